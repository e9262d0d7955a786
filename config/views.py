"""What stands beside the resources: the entry document, health, and the address without its trailing slash."""

from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from config.api import envelope, links
from config.api.parameters import Parameters
from config.api.permissions import PublicPermission
from config.api.renderers import to_json
from config.api.viewsets import View


class EntryView(View):
    """Where everything is."""

    permission_classes = [PublicPermission]

    @extend_schema(responses=inline_serializer("Entry", {"name": serializers.CharField()}))
    def get(self, request: Request, **kwargs: str) -> Response:
        collections = {
            name: {"href": links.address(request, f"/{name}")} for name in ("users", "orders", "posts", "payments")
        }
        data = {
            "name": "Users Resource Service",
            "_links": {
                "self": {"href": request.path},
                **collections,
                "protected": {"href": "/api/protected"},
                "documentation": {"href": "/docs"},
                "schema": {"href": "/openapi.json"},
            },
        }
        return Response(envelope.single(data))


def live(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return _healthy()


def ready(request: HttpRequest) -> HttpResponse:
    """The process answers, and so does the database; otherwise the exception handler says 503."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return _healthy()


def _healthy() -> HttpResponse:
    return HttpResponse(
        to_json(envelope.single({"status": "ok"})),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


class PermanentRedirect(HttpResponsePermanentRedirect):
    """308: unlike after a 301, the method and the body are sent again as they were."""

    status_code = 308


def without_trailing_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirects to the same path without its last slash.

    One leading slash: `//host/` must not become a redirect to another host.
    """
    query = Parameters(request.GET).with_changes()
    return PermanentRedirect(f"/{path.strip('/')}{'?' if query else ''}{query}")
