"""What the OpenAPI document reads from a view."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission

from config.api import streams
from config.api.included import get_names
from config.api.requests import NDJSONParser
from config.api.versions.table import Change, Version, has
from config.api.viewsets import ResourceViewSet
from config.http.errors import ErrorCode


class DescribedView(Protocol):
    """A view of this service, as the generator instantiates it for one operation of one version."""

    described_version: Version
    authentication_classes: Sequence[type[BaseAuthentication]]
    permission_classes: Sequence[type[BasePermission]]
    envelope_known: ClassVar[bool]
    names_version: ClassVar[bool]
    own_errors: ClassVar[Mapping[str, Sequence[ErrorCode]]]

    def required_scope(self, method: str) -> str | None: ...


def takes_include(view: DescribedView) -> bool:
    """Whether an operation may include related resources."""
    is_read = isinstance(view, ResourceViewSet) and view.action in {"list", "retrieve"}
    has_later = has(view.described_version, Change.NO_UNKNOWN_NAMES)
    return is_read and has_later and bool(get_names(view))


def is_streamed(view: DescribedView) -> bool:
    """Whether an operation answers whole lists, too."""
    is_list = isinstance(view, ResourceViewSet) and view.action == "list" and view.streams
    return is_list and has(view.described_version, streams.SINCE)


def takes_lines(view: DescribedView, method: str) -> bool:
    """Whether an operation takes many resources at once."""
    is_bulk = isinstance(view, ResourceViewSet) and view.bulk and method in NDJSONParser.methods
    return is_bulk and has(view.described_version, NDJSONParser.since)


def takes_dry_run(view: DescribedView, method: str) -> bool:
    """Whether an operation may be tried without being done."""
    is_write = isinstance(view, ResourceViewSet) and method not in SAFE_METHODS
    return is_write and has(view.described_version, Change.NO_UNKNOWN_NAMES)
