"""The browsable API: the JSON that a program would get, on a page for a person, with links and forms.

Views give programs and browsers the same response. Where HTML won the negotiation, the middleware puts it on a
page: its status, all its headers and its body, unchanged. So an error is a page whatever raised it, and everything that
is shown is escaped in one place.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from config.api.browsable.context import build_context
from config.api.exceptions import BEARER, CHALLENGE
from config.api.listing.query import QueryParameters
from config.api.representation.renderers import JSONRenderer
from config.api.versions.versioning import choose_media_type, is_oauth_endpoint
from config.api.views import is_browsable
from config.http import compression
from config.http.headers import vary_on
from config.http.media_types import HTML
from config.http.middleware import Middleware


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
    coding = compression.choose_coding(request, response)
    if coding:
        compression.compress(response)
