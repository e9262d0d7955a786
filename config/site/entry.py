"""What stands beside the resources: entry document, health, schema, and addresses with a trailing slash."""

from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from config.api.permissions import PublicPermission
from config.api.representation import envelope, links
from config.api.representation.renderers import JSONRenderer
from config.api.schema import get_document
from config.api.versions import versioning
from config.api.versions.paths import prefix_of, quoted
from config.api.versions.table import Status, Version
from config.api.views import View
from config.fastpath.responses import Response
from config.http.errors import DomainError, ErrorCode, not_found
from config.server import metrics


class VersionSerializer(serializers.Serializer[Version]):
    example = {
        "number": 2,
        "status": Status.CURRENT,
        "released": date(2026, 12, 1),
        "deprecated": None,
        "sunset": None,
        "changes": ["A list asked for without `page` or `offset` is paged by cursor."],
    }

    version = serializers.IntegerField(source="number")
    status = serializers.ChoiceField([status.value for status in Status])
    released = serializers.DateField()
    deprecated = serializers.DateField(allow_null=True)
    sunset = serializers.DateField(allow_null=True)
    changes = serializers.ListField(child=serializers.CharField(max_length=1000))


class LinkSerializer(serializers.Serializer):
    href = serializers.CharField(max_length=1024)
    method = serializers.CharField(max_length=10, required=False)


class EntrySerializer(serializers.Serializer):
    name = serializers.CharField(max_length=100)
    _links = serializers.DictField(child=LinkSerializer(), label="_links")


class HealthSerializer(serializers.Serializer):
    status = serializers.ChoiceField(["ok"])


class EntryView(View):
    """Where everything is."""

    permission_classes = [PublicPermission]

    @extend_schema(responses=EntrySerializer)
    def get(self, request: Request, **kwargs: str) -> Response:
        prefix = prefix_of(request.path)
        collections = {
            name: {"href": links.address(request, f"/{name}")} for name in ("users", "orders", "posts", "payments")
        }
        data = {
            "name": "Users Resource Service",
            envelope.LINKS: {
                "self": {"href": links.address(request, "" if prefix else "/")},
                **collections,
                "login": {"href": links.address(request, f"{'' if prefix else '/api'}/login"), "method": "POST"},
                "protected": {"href": links.address(request, f"{'' if prefix else '/api'}/protected")},
                "versions": {"href": links.address(request, "/versions")},
                "documentation": {"href": "/docs"},
                "schema": {"href": "/openapi.json"},
            },
        }
        return self.success(data)


class VersionsView(View):
    """The versions of the API: their dates, and what changed with each."""

    permission_classes = [PublicPermission]

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, **kwargs: str) -> Response:
        data = VersionSerializer(settings.API_VERSIONS, many=True).data
        return self.success(data)


class Unversioned:
    """What stands at the root only, and needs no credential."""

    permission_classes = [PublicPermission]
    authentication_classes: ClassVar[Sequence[type]] = ()
    versioning_class = None


class LiveView(Unversioned, View):
    """The process answers."""

    cache_control = "no-store"

    @extend_schema(responses=HealthSerializer)
    def get(self, request: Request) -> Response:
        return self.success({"status": "ok"})


class ReadyView(LiveView):
    """The process answers, and so does the database; otherwise the exception handler says 503."""

    @extend_schema(responses=HealthSerializer)
    def get(self, request: Request) -> Response:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return super().get(request)


class SchemaView(Unversioned, View):
    """The OpenAPI document of the version that `?version=` names, or the Accept header."""

    renderer_classes = [JSONRenderer]
    envelope_known = False
    names_version = True

    @extend_schema(
        responses={
            200: {
                "type": "object",
                "properties": {
                    "openapi": {"type": "string", "maxLength": 16, "pattern": r"^3\.1\."},
                    "info": {"type": "object"},
                    "paths": {"type": "object"},
                    "components": {"type": "object"},
                },
                "required": ["openapi", "info", "paths", "components"],
            }
        }
    )
    def get(self, request: Request) -> Response:
        return Response(get_document(versioning.of(request)))


class ExpositionRenderer(BaseRenderer):
    """Prometheus' text format, which is bytes already."""

    media_type = "text/plain"
    format = "prometheus"

    def render(self, data: bytes, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data


class MetricsView(Unversioned, View):
    """What Prometheus reads, with METRICS_TOKEN as its bearer token; without that setting nothing is here."""

    cache_control = "no-store"
    renderer_classes = [ExpositionRenderer]
    envelope_known = False
    own_errors = {"GET": (ErrorCode.UNAUTHENTICATED, ErrorCode.INVALID_TOKEN, ErrorCode.NOT_FOUND)}
    own_security = [{"metricsToken": []}]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if not settings.METRICS_TOKEN:
            raise not_found()
        super().initial(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        given = request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not constant_time_compare(token.strip(), settings.METRICS_TOKEN):
            code = ErrorCode.INVALID_TOKEN if given else ErrorCode.UNAUTHENTICATED
            challenge = {"WWW-Authenticate": 'Bearer realm="metrics"'}
            raise DomainError(code, "This is for the bearer of METRICS_TOKEN.", headers=challenge)

    @extend_schema(responses={200: {"type": "string", "maxLength": 16_000_000, "pattern": "^#"}})
    def get(self, request: Request) -> Response:
        return Response(metrics.exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class PermanentRedirect(HttpResponsePermanentRedirect):
    """308: unlike after a 301, the method and the body are sent again as they were."""

    status_code = 308


@csrf_exempt
def without_trailing_slash(request: HttpRequest, path: str) -> HttpResponse:
    """Redirects to the same path without its last slash.

    One leading slash: `//host/` must not become a redirect to another host.
    """
    return PermanentRedirect(quoted(f"/{path.strip('/')}", request.META.get("QUERY_STRING", "")))
