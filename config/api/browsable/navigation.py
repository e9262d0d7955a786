"""The position of a page: its heading, the addresses above it, and the same resource in other versions."""

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlencode

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, QueryDict
from rest_framework.views import APIView

from config.api.versions import versioning
from config.api.versions.table import Status
from config.api.versions.versioning import VERSION_PARAMETER, get_prefix, is_versioned, strip_prefix
from config.http.headers import quote_address
from config.http.url_map import find_view

# No route has more segments below its prefix. A client may send thousands, and each would be resolved.
_MAX_BREADCRUMBS = 4
_WORD_BOUNDARY = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def build_heading(view: APIView) -> str:
    """`Users`, `User 5`, `API Keys`, `Protected`: the name of the view's class."""
    name = _WORD_BOUNDARY.sub(" ", type(view).__name__.removesuffix("View").removesuffix("ViewSet"))
    suffix = getattr(view, "suffix", None)
    if suffix == "Instance":
        return f"{name} {view.kwargs['id']}"
    return f"{name}s" if suffix == "List" else name


def build_breadcrumbs(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """The last segment and the address of each path above this one and of this one; no address without a route."""
    path = get_prefix(request.path)
    yield path or "root", build_address(request, path or "/")
    segments = filter(None, strip_prefix(request.path).split("/"))
    for segment in islice(segments, _MAX_BREADCRUMBS):
        path = f"{path}/{segment}"
        yield segment, build_address(request, path) if find_view(path) else ""


def get_query(request: HttpRequest) -> QueryDict:
    """The query of the request, empty where Django refuses to parse it."""
    try:
        return request.GET
    except SuspiciousOperation:
        return QueryDict()


def build_address(request: HttpRequest, path: str) -> str:
    """An address with the version parameter of the request, and nothing else of its query.

    Args:
        request: the request that the page responds to.
        path: the path of the address.

    Returns:
        The address, percent-encoded.
    """
    version = get_query(request).get(VERSION_PARAMETER)
    return quote_address(path, urlencode({VERSION_PARAMETER: version}) if version else "")


def build_version_links(request: HttpRequest) -> Iterator[tuple[str, str, bool]]:
    """Each usable version, the address of the same resource in it, and whether it is that of the response."""
    if is_versioned(request.path_info):
        current = versioning.get_response_version(request)
        for version in settings.API_VERSIONS:
            if version.status != Status.RETIRED:
                yield f"v{version}", versioning.build_versioned_address(request, f"/api/v{version}"), version == current
