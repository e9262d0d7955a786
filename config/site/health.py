"""Liveness and readiness, and the mixin of views at the root only."""

from collections.abc import Sequence
from typing import ClassVar

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.permissions import PublicPermission
from config.api.views import View


class UnversionedMixin:
    """A view at the root only, which takes no version and no credential."""

    permission_classes = [PublicPermission]
    authentication_classes: ClassVar[Sequence[type[BaseAuthentication]]] = ()
    versioning_class = None


class HealthSerializer(serializers.Serializer):
    status = serializers.ChoiceField(["ok"])


class LiveView(UnversionedMixin, View):
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
