"""Redirects of paths with a trailing slash, which no resource has."""

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.views.decorators.csrf import csrf_exempt

from config.api.versions.paths import quoted


class PermanentRedirect(HttpResponsePermanentRedirect):
    """308: unlike after a 301, the method and the body are sent again as they were."""

    status_code = 308


@csrf_exempt
def redirect_without_trailing_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirects to the same path without its last slash.

    One leading slash: `//host/` must not become a redirect to another host.
    """
    return PermanentRedirect(quoted(f"/{path.strip('/')}", request.META.get("QUERY_STRING", "")))
