"""The browsable API: the JSON that a program would get, on a page for a person, with links and forms.

Views give programs and browsers the same response. Where HTML won the negotiation, the middleware puts it on a
page: its status, all its headers and its body, unchanged. So an error is a page whatever raised it, and everything that
is shown is escaped in one place.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from rest_framework.views import APIView

from config.api.browsable import navigation
from config.api.browsable.forms import Data, build_forms
from config.api.browsable.highlighting import parse_links, render_json, render_link
from config.api.browsable.lists import ListQuery, build_table
from config.api.exceptions import BEARER, CHALLENGE
from config.api.listing.query import QueryParameters
from config.api.representation.renderers import JSONRenderer
from config.api.versions.versioning import choose_media_type, get_response_version, is_oauth_endpoint
from config.api.views import is_browsable
from config.api.viewsets import ResourceViewSet
from config.http import compression
from config.http.errors import get_phrase
from config.http.headers import vary_on
from config.http.media_types import HTML
from config.http.middleware import Middleware
from config.http.request_state import get_state

Context: TypeAlias = Mapping[str, object]


class BrowsableMiddleware(Middleware):
    """Renders a JSON response as a page where that is what the request accepts best."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        wants_page = is_browsable(response) or (response.status_code >= 400 and _prefers_page(request))
        if wants_page and response.get("Content-Type") == JSONRenderer.media_type:
            _render_page(request, response)
        return response


def _prefers_page(request: HttpRequest) -> bool:
    """Whether an error that no view negotiated becomes a page. Those of the OAuth endpoints keep OAuth's form."""
    if is_oauth_endpoint(request.path_info):
        return False
    return choose_media_type(request.META.get("HTTP_ACCEPT", "")).media_type == HTML


def _forget_dropped(request: Any, parameters: QueryParameters) -> None:
    """Takes what the view dropped out of the query, so that no link, form or command of the page repeats it."""
    if parameters.query.keys() != request.GET.keys():
        request.GET = parameters.query
        request.META["QUERY_STRING"] = "&".join(text for _, text in parameters.encode())


def _render_page(request: HttpRequest, response: HttpResponse) -> None:
    """Replaces the body by a page. It is another representation, so that the entity tag does not apply to it."""
    view: Any = getattr(response, "renderer_context", {}).get("view")
    template, more = "config/browsable.html", dict[str, object]()
    if parameters := getattr(view, "parameters", None):
        _forget_dropped(request, parameters)
    if response.status_code < 400 and hasattr(view, "get_page"):
        template, more = view.get_page(request) or (template, more)
    response.content = render_to_string(template, {**build_context(request, response), **more}, request).encode()
    response["Content-Type"] = "text/html; charset=utf-8"
    # A view may have a policy for what it renders itself; the page has that of all pages.
    del response["ETag"], response["Content-Security-Policy"]
    if response.get("WWW-Authenticate") == CHALLENGE:
        # A browser that is challenged for Basic asks for a password before it shows the page with its sign-in link.
        response["WWW-Authenticate"] = BEARER
    vary_on(response, "Accept", "Cookie")
    if compression.choose_coding(request, response):
        compression.compress(response)


# --- The template context: the request, the caller and the whole response


def build_context(request: HttpRequest, response: HttpResponse) -> Context:
    """The context of config/browsable.html.

    Args:
        request: the request that was responded to.
        response: the response, with a body of JSON.

    Returns:
        The context.
    """
    text = response.content.decode()
    body = json.loads(text, parse_float=Decimal)
    view: APIView | None = getattr(response, "renderer_context", {}).get("view")
    address, status = request.get_full_path(), HTTPStatus(response.status_code)
    return {
        **_build_view_context(request, view),
        **_build_caller_context(request, response),
        **_build_list_context(request, response, view, body),
        "method": "GET" if request.method == "HEAD" else request.method,
        "address": address,
        "path": request.path,
        "form_address": navigation.build_address(request, request.path),
        "breadcrumbs": list(navigation.build_breadcrumbs(request)),
        "sign_in": f"{settings.LOGIN_URL}?{urlencode({'next': address})}",
        "status": status,
        "phrase": (phrase := get_phrase(status)),
        "heading": phrase if view is None else navigation.build_heading(view),
        # RequestMiddleware, which is outside of this one, has not added its header yet.
        "headers": sorted({**response.headers, "Request-Id": get_state(request.META).request_id}.items()),
        "etag": response.get("ETag", ""),
        "location": render_link(response.get("Location", "")),
        "is_deprecated": "Deprecation" in response,
        "successor": parse_links(response.get("Link", "")).get("successor-version", ""),
        "body": render_json(text),
        "error": body.get("error") if status >= HTTPStatus.BAD_REQUEST and isinstance(body, dict) else None,
        "secret": _get_secret(view, status, body),
        "forms": _build_forms(view, status, body),
    }


def _get_secret(view: Any, status: HTTPStatus, body: Any) -> str:
    """Values that only the response that created the resource shows, such as a new API key."""
    names = getattr(getattr(view, "serializer_class", None), "shown_once", ())
    if status != HTTPStatus.CREATED or not names:
        return ""
    data = body.get("data", body)
    return next((data[name] for name in names if name in data), "")


def _build_view_context(request: HttpRequest, view: APIView | None) -> Context:
    if view is None:
        return {}
    return {
        "description": "" if "id" in view.kwargs else view.get_view_description().partition("\n")[0],
        "methods": view.allowed_methods,
        "versions": list(navigation.build_version_links(request)),
        "is_partial": bool(getattr(view, "chosen_fields", None)),
    }


def _build_caller_context(request: HttpRequest, response: HttpResponse) -> Context:
    principal = get_state(request.META).principal
    user = principal.user if principal else None
    # An invalid credential never falls back to the session, so that its 401 shows nobody as signed in.
    if principal is None and response.status_code != HTTPStatus.UNAUTHORIZED:
        # A view without authentication has not read it, and nobody asks by it.
        user = find_session_user(request, get_user)
    by_session = user is not None and (principal is None or principal.kind == "session")
    return {
        "user": user,
        "account": user,
        "section": "Browse",
        "principal": principal,
        "csrf_token": get_token(request) if by_session else "",
    }


def _build_list_context(request: HttpRequest, response: HttpResponse, view: APIView | None, body: object) -> Context:
    """Of a list, or of what is wrong with the query of one."""
    if not isinstance(view, ResourceViewSet) or view.action != "list":
        return {}
    if response.status_code not in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}:
        return {}
    query = ListQuery(request, view)
    if response.status_code == HTTPStatus.BAD_REQUEST:
        return {"view_form": query.build_form()}
    # A list has them with and without its envelope.
    targets = parse_links(response.get("Link", ""))
    return {
        "view_form": query.build_form(),
        "pages": [(name, targets[name]) for name in ("first", "prev", "next", "last") if name in targets],
        "meta": body.get("meta") if isinstance(body, dict) else None,
        "by_number": query.build_address(page="1"),
        "by_cursor": query.build_address(cursor=""),
        "table": build_table(request, query, body),
        "downloads": query.build_downloads(get_response_version(request)),
    }


def _build_forms(view: APIView | None, status: int, body: Any) -> Sequence[Data]:
    if view is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # The permissions might query the database, whose failure may be what the response reports.
        return ()
    # Whether the response contains the whole of the view's row.
    is_whole = isinstance(view, ResourceViewSet) and view.row is not None and view.chosen_fields is None
    if not is_whole or status >= HTTPStatus.BAD_REQUEST:
        return list(build_forms(view, None))
    return list(build_forms(view, body["data"] if view.enveloped else body))


def find_session_user(
    request: HttpRequest, get_user: Callable[[HttpRequest], AbstractBaseUser | AnonymousUser]
) -> AbstractBaseUser | None:
    """The user of the session; None where nobody is signed in, and without the database.

    Args:
        request: Django's own.
        get_user: Django's function that reads the user. That of the middleware remembers the user on the request, and
            the log then names them as the one who asks; `django.contrib.auth.get_user` does not.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not hasattr(request, "session"):
        return None
    try:
        user = get_user(request)
    except Error:
        return None
    return user if isinstance(user, AbstractBaseUser) else None
