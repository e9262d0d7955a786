"""The template context of a page: the request, the caller and the whole response."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from rest_framework.views import APIView

from config.api.browsable import navigation
from config.api.browsable.forms import Form, build_forms
from config.api.browsable.highlighting import parse_links, render_json, render_link
from config.api.browsable.lists import ListQuery, build_table
from config.api.browsable.session_user import find_session_user
from config.api.versions.versioning import get_response_version
from config.api.viewsets import ResourceViewSet
from config.http.errors import get_phrase
from config.http.request_state import get_state

Context: TypeAlias = Mapping[str, object]


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


def _build_forms(view: APIView | None, status: int, body: Any) -> Sequence[Form]:
    if view is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # The permissions might query the database, whose failure may be what the response reports.
        return ()
    # Whether the response contains the whole of the view's row.
    is_whole = isinstance(view, ResourceViewSet) and view.row is not None and view.chosen_fields is None
    if not is_whole or status >= HTTPStatus.BAD_REQUEST:
        return list(build_forms(view, None))
    return list(build_forms(view, body["data"] if view.enveloped else body))
