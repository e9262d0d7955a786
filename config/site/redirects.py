"""Redirects of paths with a trailing slash, which no resource has."""

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.views.decorators.csrf import csrf_exempt

from config.http.headers import quote_address


class PermanentRedirect(HttpResponsePermanentRedirect):
    """308, after which a client repeats method and body; after a 301 it may send GET (RFC 9110, section 15.4.9)."""

    status_code = 308


@csrf_exempt
def redirect_without_trailing_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirects to the same path and query without the trailing slashes.

    The path keeps a single leading slash: `//host/` must not become a redirect to another host.
    """
    return PermanentRedirect(quote_address(f"/{path.strip('/')}", request.META.get("QUERY_STRING", "")))
