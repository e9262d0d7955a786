"""Redirects of paths with a trailing slash, which no resource has."""

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.views.decorators.csrf import csrf_exempt

from config.http.headers import quote_address


@csrf_exempt
def redirect_without_trailing_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirects to the same path and query without the trailing slashes: by 308, after which a client repeats the body.

    The path keeps a single leading slash: `//host/` must not become a redirect to another host.
    """
    address = quote_address(f"/{path.strip('/')}", request.META.get("QUERY_STRING", ""))
    return HttpResponsePermanentRedirect(address, preserve_request=True)
