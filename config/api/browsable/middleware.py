"""The browsable API: the JSON that a program would get, on a page for a person, with links that click and forms.

A view answers everybody alike. Where HTML won the negotiation the middleware puts that answer on a page: its status,
all its headers and its body, as they stand. So an error of whatever origin is a page, too, and there is one door
through which everything that is shown goes, escaped.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import get_user
from django.core.exceptions import SuspiciousOperation
from django.db import Error
from django.http import HttpRequest, HttpResponse, QueryDict
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from config.api.browsable import forms as browsable_forms
from config.api.browsable import highlighting
from config.api.exceptions import BEARER, CHALLENGE
from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT
from config.api.listing.query import VERSION_PARAMETER
from config.api.representation.renderers import JSONRenderer, is_for_a_person
from config.api.settings import settings
from config.api.versions import versioning
from config.api.versions.paths import is_oauth_endpoint, is_versioned, prefix_of, quoted, without_prefix
from config.api.versions.table import Status
from config.api.viewsets import readable_fields
from config.http import compression, media_types
from config.http.headers import vary_on
from config.http.middleware import GetResponse

# What a page shows first; the rest follows in the order of the alphabet.
_FIRST = ("ETag", "Location", "Content-Location", "Link", "RateLimit", "RateLimit-Policy", "Request-Id")
_PAGES = ("first", "prev", "next", "last")
_PLACES = ("page", "offset", "cursor")
# The answers to a list's query, right or wrong.
_ABOUT_QUERY = {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}
# No address of the service has more parts below its prefix; somebody may send thousands, and each is looked up.
_DEEPEST = 4
# Where a word begins in the name of a class.
_WORD = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class BrowsableMiddleware:
    """Shows an answer on a page where that is what the request accepts best."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        wanted = is_for_a_person(response) or (response.status_code >= 400 and _prefers_page(request))
        if wanted and response.get("Content-Type") == JSONRenderer.media_type:
            _show(request, response)
        return response


def _prefers_page(request: HttpRequest) -> bool:
    """Whether an error that no view negotiated is to be a page. Those of OAuth's endpoints have OAuth's form."""
    if is_oauth_endpoint(request.path_info):
        return False
    return media_types.choose(request.META.get("HTTP_ACCEPT", "")).media_type == media_types.HTML


def _show(request: HttpRequest, response: HttpResponse) -> None:
    """Puts an answer on a page, which is another representation: the tag of the JSON is not that of the page."""
    response.content = render_to_string("config/browsable.html", _context(request, response)).encode()
    response["Content-Type"] = "text/html; charset=utf-8"
    # Of the page, the policy of pages: some views have one of their own, for what they show themselves.
    del response["ETag"], response["Content-Security-Policy"]
    if response.get("WWW-Authenticate") == CHALLENGE:
        # To Basic a browser would open a window of its own, and show the page with the sign-in link only after it.
        response["WWW-Authenticate"] = BEARER
    vary_on(response, "Accept", "Cookie")
    coding = compression.choose(request, response)
    if coding:
        compression.apply(response)


def _context(request: HttpRequest, response: HttpResponse) -> dict[str, Any]:
    text = response.content.decode()
    body = json.loads(text, parse_float=Decimal)
    view = getattr(response, "renderer_context", {}).get("view")
    principal = getattr(request, "principal", None)
    # A bad explicit credential never falls back to the session, on the page that says so neither.
    refused = response.status_code == HTTPStatus.UNAUTHORIZED
    person = principal.user if principal else None if refused else _signed_in(request)
    by_session = person is not None and (principal is None or principal.kind == "session")
    status = HTTPStatus(response.status_code)
    error = body.get("error") if status >= 400 and isinstance(body, dict) else None
    # What the caller may send is not asked where the answer is that the service, or its database, is in trouble.
    offers = view is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR
    forms = list(browsable_forms.of_view(view, None if error else _row_in(view, body))) if offers else []
    address = request.get_full_path()
    return {
        "heading": status.phrase if view is None else _heading(view),
        "lead": "" if view is None or "id" in view.kwargs else view.get_view_description(),
        "crumbs": list(_crumbs(request)),
        "method": "GET" if request.method == "HEAD" else request.method,
        "methods": () if view is None else view.allowed_methods,
        "address": address,
        "form_address": _address(request, request.path),
        "status": status,
        "error": error,
        "headers": list(_headers(request, response)),
        "etag": response.get("ETag", ""),
        "body": highlighting.json_as_html(text),
        "versions": () if view is None else list(_versions(request)),
        "pages": _pages(response),
        "place": _place(request, body),
        "query": _query(request, view) if getattr(view, "action", None) == "list" and status in _ABOUT_QUERY else None,
        "forms": forms,
        "chosen": bool(getattr(view, "chosen", None)),
        "person": person,
        "principal": principal,
        "csrf_token": get_token(request) if by_session else "",
        "sign_in": f"{settings.LOGIN_URL}?{urlencode({'next': address})}",
    }


def _signed_in(request: HttpRequest) -> Any:
    """Whose session it is, where no view asked; None while the database is away."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not hasattr(request, "session"):
        return None
    try:
        user = get_user(request)
    except Error:
        return None
    return user if user.is_authenticated else None


# --- What it is


def _heading(view: Any) -> str:
    """`Users`, `User 5`, `API Keys`, `Protected`: the name of the view's class."""
    name = _WORD.sub(" ", type(view).__name__.removesuffix("View").removesuffix("ViewSet"))
    suffix = getattr(view, "suffix", None)
    if suffix == "Instance":
        return f"{name} {view.kwargs['id']}"
    return f"{name}s" if suffix == "List" else name


def _crumbs(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """The addresses above this one, each with its last part; no address where there is nothing."""
    path = prefix_of(request.path)
    yield path or "root", _address(request, path or "/")
    parts = list(filter(None, without_prefix(request.path).split("/")))
    for part in parts[:_DEEPEST]:
        path = f"{path}/{part}"
        yield part, _address(request, path) if _leads_somewhere(path) else ""
    if len(parts) > _DEEPEST:
        yield "…", ""


def _leads_somewhere(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def _query_of(request: HttpRequest) -> QueryDict:
    """The query, empty where it is one that Django refuses to read."""
    try:
        return request.GET
    except SuspiciousOperation:
        return QueryDict()


def _address(request: HttpRequest, path: str) -> str:
    """An address with the version parameter that the request used, and nothing else of its query."""
    version = _query_of(request).get(VERSION_PARAMETER)
    return quoted(path, urlencode({VERSION_PARAMETER: version}) if version else "")


def _versions(request: HttpRequest) -> Iterator[tuple[str, str, bool]]:
    """Each version, the address of the same resource in it, and whether it is the one of this answer."""
    if is_versioned(request.path_info):
        present = versioning.told_of(request)
        for version in settings.API_VERSIONS:
            if version.status != Status.RETIRED:
                yield f"v{version}", versioning.address_in(f"/api/v{version}", request), version == present


# --- The answer


def _headers(request: HttpRequest, response: HttpResponse) -> Iterator[tuple[str, str]]:
    # What the outermost middlewares put there belongs to it as well.
    given = {**response.headers, "Request-Id": request.request_id}  # type: ignore[attr-defined]
    names = [name for name in _FIRST if name in given]
    for name in (*names, *sorted(given.keys() - set(names))):
        yield name, highlighting.header(name, str(given[name]))


def _row_in(view: Any, body: Any) -> Mapping[str, Any] | None:
    """The representation of the view's row, where the answer shows the whole of it."""
    if getattr(view, "row", None) is None or view.chosen is not None:
        return None
    found: Mapping[str, Any] = body["data"] if view.enveloped else body
    return found


# --- Lists


def _pages(response: HttpResponse) -> Sequence[tuple[str, str]]:
    """The pages of a list, as `Link` has them: in the envelope and bare alike."""
    targets = {rel: target for target, rel in highlighting.targets(response.get("Link", ""))}
    return [(rel, targets[rel]) for rel in _PAGES if rel in targets and "self" in targets]


def _place(request: HttpRequest, body: Any) -> Mapping[str, str]:
    """What the `meta` of a list says of the page, and the address of the other way of paging."""
    meta = body.get("meta") if isinstance(body, dict) else None
    if not meta:
        return {}
    kept = [(name, value) for name, value in _query_of(request).items() if name not in _PLACES]
    by_cursor = "hasMore" in meta
    other = ("page by number", ("page", "1")) if by_cursor else ("page by cursor", ("cursor", ""))
    told = "" if by_cursor else f"Page {meta['page']:,} of {meta['totalPages']:,}; {meta['total']:,} in all."
    return {"told": told, "other": other[0], "address": quoted(request.path, urlencode([*kept, other[1]]))}


def _query(request: HttpRequest, view: Any) -> Mapping[str, Any]:
    """What a list may be asked: filters, order, size, fields; and what is asked again with it."""
    given = _query_of(request)
    kept = {name: given[name] for name in (VERSION_PARAMETER, "envelope") if name in given}
    start = {"page": "1", "offset": "0", "cursor": ""}
    kept |= {name: value for name, value in start.items() if name in given}
    filters = [
        {
            "name": name,
            "value": given.get(name, ""),
            "choices": [value for value, _ in declared.extra.get("choices", ())],
        }
        for name, declared in view.filterset_class.base_filters.items()
    ]
    return {
        "filters": filters,
        "sortable": view.sortable,
        "sort": given.get("sort", "id"),
        "order": given.get("order", "asc"),
        "limit": given.get("limit", ""),
        "default_limit": DEFAULT_LIMIT,
        "max_limit": MAX_LIMIT,
        "fields": given.get("fields", ""),
        "known": ", ".join(readable_fields(view.serializer_class)),
        "kept": kept,
    }
