"""The list on a page: its position, and links to its other pages."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from config.api.browsable.highlighting import parse_links
from config.api.browsable.navigation import get_query
from config.api.browsable.queries import START
from config.api.representation.envelope import LINKS
from config.api.versions.versioning import VERSION_PARAMETER, get_response_version, strip_prefix
from config.api.viewsets import ResourceViewSet
from config.http.headers import quote_address
from config.http.media_types import CSV, NDJSON

_RELATIONS = ("first", "prev", "next", "last")
STREAM_FORMATS = (("CSV", CSV), ("NDJSON", NDJSON))


def build_page_links(response: HttpResponse) -> Sequence[tuple[str, str]]:
    """The relations and targets of the other pages, from `Link`, which a list has with and without its envelope."""
    targets = parse_links(response.get("Link", ""))
    return [(name, targets[name]) for name in _RELATIONS if name in targets and "self" in targets]


def describe_position(request: HttpRequest, body: object) -> Mapping[str, str]:
    """The position of a page in its list, and the address of the list in the other way of paging.

    Args:
        request: the request of the list.
        body: the parsed body of the response.

    Returns:
        The position under `summary`, the other way under `other` and `address`; empty where the body is no page.
    """
    meta = body.get("meta") if isinstance(body, dict) and LINKS in body else None
    if not meta:
        return {}
    query = [(name, value) for name, value in get_query(request).items() if name not in START]
    if "hasMore" in meta:
        return {"summary": "", "other": "page by number", "address": _build_address(request, query, "page")}
    if meta["total"] is None:
        summary = f"Page {meta['page']:,}; more than {meta['totalAtLeast']:,} in all."
    else:
        summary = f"Page {meta['page']:,} of {meta['totalPages']:,}; {meta['total']:,} in all."
    return {"summary": summary, "other": "page by cursor", "address": _build_address(request, query, "cursor")}


def _build_address(request: HttpRequest, query: Sequence[tuple[str, object]], parameter: str) -> str:
    return quote_address(request.path, urlencode([*query, (parameter, START[parameter])]))


def build_downloads(request: HttpRequest, view: ResourceViewSet) -> Mapping[str, object] | None:
    """Where the whole list is, and in which formats; None where it is none of those that are streamed.

    Args:
        request: the request of the list.
        view: its view.
    """
    if not view.may_stream():
        return None
    left_out = {*START, "limit", "include", "envelope", VERSION_PARAMETER}
    query = [(name, value) for name, value in get_query(request).items() if name not in left_out]
    # With another Accept, an address without a version may be answered in another one.
    path = f"/api/v{get_response_version(request)}{strip_prefix(request.path)}"
    return {"address": quote_address(path, urlencode(query)), "formats": STREAM_FORMATS}
