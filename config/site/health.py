"""Liveness and readiness, and the mixin of views at the root only."""

from collections.abc import Sequence
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.permissions import PublicPermission
from config.api.views import View
from config.http.lanes import Lane
from config.server import readiness


class UnversionedMixin:
    """A view at the root only, which takes no version and no credential."""

    permission_classes = [PublicPermission]
    authentication_classes: ClassVar[Sequence[type[BaseAuthentication]]] = ()
    versioning_class = None


class HealthSerializer(serializers.Serializer):
    status = serializers.ChoiceField(["ok"])


class LiveView(UnversionedMixin, View):
    """The process answers."""

    texts = {"get": "Check liveness.\n\nReturns 200 while the process runs."}

    cache_control = "no-store"
    lanes = {"GET": Lane.NONE, "HEAD": Lane.NONE}
    takes_any_host = True

    @extend_schema(responses=HealthSerializer)
    def get(self, request: Request) -> Response:
        return self.success({"status": "ok"})


class ReadyView(LiveView):
    """The process answers, and so does the database; otherwise the exception handler says 503."""

    texts = {"get": "Check readiness.\n\nReturns 503 while the database is unavailable."}

    @extend_schema(responses=HealthSerializer)
    def get(self, request: Request) -> Response:
        readiness.check()
        return super().get(request)
