"""What the OpenAPI document reads from a view, which the generator instantiates for one operation of one version."""

from typing import Any

from rest_framework.permissions import SAFE_METHODS

from config.api.included import get_names
from config.api.requests import NDJSONParser
from config.api.versions.table import Change, has
from config.api.viewsets import ResourceViewSet


def is_later(view: Any) -> bool:
    """Whether the operation is of a version with what came after the first one."""
    return has(view.described_version, Change.NO_UNKNOWN_NAMES)


def takes_include(view: Any) -> bool:
    """Whether an operation may include related resources."""
    is_read = isinstance(view, ResourceViewSet) and view.action in {"list", "retrieve"}
    return is_read and is_later(view) and bool(get_names(view))


def is_list(view: Any) -> bool:
    return isinstance(view, ResourceViewSet) and view.action == "list"


def is_streamed(view: Any) -> bool:
    """Whether an operation answers whole lists, too."""
    return is_list(view) and is_later(view)


def takes_lines(view: Any, method: str) -> bool:
    """Whether an operation takes many resources at once."""
    is_bulk = isinstance(view, ResourceViewSet) and view.bulk
    return is_bulk and method in NDJSONParser.methods and is_later(view)


def has_conditions(view: Any, method: str) -> bool:
    """Whether an operation compares entity tags. The tag of a stream is not known before its end."""
    if isinstance(view, ResourceViewSet):
        return method != "POST"
    return method == "GET" and not getattr(view, "streams", False)


def takes_dry_run(view: Any, method: str) -> bool:
    """Whether an operation may be tried without being done."""
    return isinstance(view, ResourceViewSet) and method not in SAFE_METHODS and is_later(view)
