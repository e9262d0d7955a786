"""The metrics in Prometheus' text format; config.server.metrics counts them, config.server.scrape looks them up."""

from django.conf import settings
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.representation.renderers import TextRenderer
from config.api.views import View
from config.http.errors import DomainError, ErrorCode, not_found
from config.http.lanes import Lane
from config.server import metrics, scrape
from config.site.health import UnversionedMixin


class MetricsView(UnversionedMixin, View):
    """The metrics for Prometheus, with METRICS_TOKEN as its bearer token; 404 without that setting."""

    texts = {"get": "Read metrics.\n\nIn the Prometheus text format. Requires METRICS_TOKEN as a bearer token."}

    cache_control = "no-store"
    # Prometheus often scrapes a machine by its address.
    takes_any_host = True
    # It reads the files of all processes.
    lanes = {"GET": Lane.MONITORING, "HEAD": Lane.MONITORING}
    renderer_classes = [TextRenderer]
    envelope_known = False
    own_errors = {"GET": (ErrorCode.UNAUTHENTICATED, ErrorCode.INVALID_TOKEN, ErrorCode.NOT_FOUND)}

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        if not settings.METRICS_TOKEN:
            raise not_found()
        super().initial(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        authorization = request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not constant_time_compare(token.strip(), settings.METRICS_TOKEN):
            code = ErrorCode.INVALID_TOKEN if authorization else ErrorCode.UNAUTHENTICATED
            challenge = {"WWW-Authenticate": 'Bearer realm="metrics"'}
            raise DomainError(code, "Send the METRICS_TOKEN as a bearer token.", headers=challenge)

    @extend_schema(
        auth=[{"metricsToken": []}],
        responses={200: {"type": "string", "maxLength": 16_000_000, "pattern": "^#"}},
    )
    def get(self, request: Request) -> Response:
        return Response(metrics.exposition() + scrape.exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
