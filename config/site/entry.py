"""The entry document and the versions of the API, served under all three prefixes."""

from datetime import date

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.permissions import PublicPermission
from config.api.representation.envelope import LINKS, build_address
from config.api.versions.table import Status, Version
from config.api.versions.versioning import get_prefix, get_versions, parse_version
from config.api.views import View
from config.site import landing


class VersionSerializer(serializers.Serializer[Version]):
    example = {
        "number": 2,
        "status": Status.CURRENT,
        "released": date(2026, 12, 1),
        "deprecated": None,
        "sunset": None,
        "changes": ["Lists without `page` or `offset` are paged by cursor."],
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


class EntryView(View):
    """Where everything is."""

    texts = {
        "get": "Read the entry point.\n\n"
        "Returns links to the main collections and to the sign-in endpoints. Requires no credential."
    }

    permission_classes = [PublicPermission]

    def get_page(self, request: HttpRequest) -> tuple[str, dict[str, object]] | None:
        """The landing page in the place of the page with this document, at the root alone."""
        is_landing = request.path == "/" and request.method in {"GET", "HEAD"}
        return ("config/landing.html", landing.build_context(request)) if is_landing else None

    @extend_schema(responses=EntrySerializer)
    def get(self, request: Request, **kwargs: str) -> Response:
        prefix = get_prefix(request.path)
        # Log-in and what it protects are served under /api only.
        credentials = "" if prefix else "/api"
        collections = {
            name: {"href": build_address(request, f"/{name}")}
            for name in ("users", "orders", "posts", "payments", "api-keys")
        }
        tokens = {
            name: {"href": build_address(request, f"{credentials}/{name}"), "method": "POST"}
            for name in ("login", "token/refresh", "logout")
        }
        data = {
            "name": "Users Resource Service",
            LINKS: {
                "self": {"href": build_address(request, "" if prefix else "/")},
                **collections,
                **tokens,
                "protected": {"href": build_address(request, f"{credentials}/protected")},
                "versions": {"href": build_address(request, "/versions")},
                "documentation": {"href": "/docs"},
                "schema": {"href": f"/openapi.json?version={_get_described_version(request)}"},
            },
        }
        return self.success(data)


def _get_described_version(request: Request) -> Version:
    """The version of the prefix, or the newest: who looks for the schema should not begin with a deprecated one."""
    number = parse_version(request.path)
    return get_versions()[number] if number else settings.API_VERSIONS[-1]


class VersionsView(View):
    """The versions of the API: their dates, and what changed with each."""

    texts = {
        "get": "List API versions.\n\n"
        "Returns each version with its status, dates and changes. `status` is `deprecated` from the "
        "announcement on, even if the date in `deprecated` is in the future."
    }

    permission_classes = [PublicPermission]

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, **kwargs: str) -> Response:
        return self.success(VersionSerializer(settings.API_VERSIONS, many=True).data)
