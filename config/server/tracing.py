"""The trace of each request, sent to a collector by OpenTelemetry's protocol (OTLP), if a setting enables it.

Otherwise, nothing is recorded and OpenTelemetry is not imported. The names of attributes follow its semantic
conventions. No span has an address, a query, a header of the client or the values of a statement.
"""

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from threading import Thread
from typing import Any

from django.conf import settings

from config.http.request_state import Spent
from config.server.background import SECONDS_TO_STOP
from config.server.logs import Answered

if settings.TRACING:
    # Before workers are forked, which share it.
    from opentelemetry import propagate, trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind, StatusCode

# OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES, says otherwise.
DEFAULT_NAME = "users-resource-service"
_SUMMARY = re.compile(r"\s*(\w+)(?:.*?\b(?:FROM|INTO|UPDATE)\s+(?:ONLY\s+)?\"?(\w+))?", re.IGNORECASE | re.DOTALL)


class Trace(Spent):
    """The span of a request, and beneath it one for each statement that it sends.

    All of them are measured by one clock, `time.perf_counter`: the wall clock may be set back meanwhile.

    Args:
        environ: the WSGI environment of the request.
        began: when the request began, by `time.perf_counter`.
    """

    __slots__ = ("_began", "_context", "_offset", "_span")

    def __init__(self, environ: Mapping[str, Any], began: float) -> None:
        super().__init__()
        sent = {name: environ.get(f"HTTP_{name.upper()}", "") for name in ("traceparent", "tracestate")}
        self._began, self._offset = began, time.time_ns() - time.perf_counter_ns()
        parent, start = propagate.extract(sent), self._get_wall_time(began)
        self._span = traces.tracer.start_span("HTTP", parent, SpanKind.SERVER, start_time=start)
        self._context = trace.set_span_in_context(self._span)

    def add(self, sql: object, seconds: float, error: BaseException | None = None) -> None:
        super().add(sql, seconds, error)
        ended = time.perf_counter()
        # psycopg takes objects, too, whose text may hold values.
        name, attributes = describe_statement(sql if isinstance(sql, str) else type(sql).__name__)
        start = self._get_wall_time(ended - seconds)
        span = traces.tracer.start_span(name, self._context, SpanKind.CLIENT, attributes, start_time=start)
        if error is not None:
            code = getattr(error, "sqlstate", None) or ""
            span.set_attributes({"error.type": type(error).__name__, "db.response.status_code": code})
            span.set_status(StatusCode.ERROR)
        span.end(self._get_wall_time(ended))

    def end(self, answered: Answered) -> None:
        """Ends the span: <https://opentelemetry.io/docs/specs/semconv/http/http-spans/>."""
        environ, state, status, headers, route, method, seconds, request = answered
        attributes = {
            "http.request.method": "_OTHER" if method == "OTHER" else method,
            "http.route": None if route == "none" else route,
            "http.response.status_code": status,
            "http.response.header.request-id": [headers.get("Request-Id", "")],
            "url.scheme": environ["wsgi.url_scheme"] if request is None else request.scheme,
            "network.protocol.version": environ.get("SERVER_PROTOCOL", "").removeprefix("HTTP/"),
            "lane": state.lane,
        }
        if status >= 500:
            attributes["error.type"] = str(status)
            self._span.set_status(StatusCode.ERROR)
        name = "HTTP" if method == "OTHER" else method
        self._span.update_name(name if route == "none" else f"{name} {route}")
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})
        self._span.end(self._get_wall_time(self._began + seconds))

    def _get_wall_time(self, moment: float) -> int:
        return self._offset + int(1e9 * moment)


class Traces:
    """The traces of this process.

    Attributes:
        is_on: whether they are sent.
        tracer: OpenTelemetry's, while they are.
    """

    is_on = False
    tracer: Any

    def start(self) -> None:
        """Begins to send traces where the settings say where to. Call it after a fork: a thread sends them."""
        if not settings.TRACING:
            return
        resource = Resource.create({SERVICE_NAME: DEFAULT_NAME}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer(__name__)
        self.is_on = True

    def stop(self) -> None:
        """Sends what is left, as far as the collector takes it in time."""
        if self.is_on:
            self.is_on = False
            sending = Thread(target=self._provider.shutdown, daemon=True)
            sending.start()
            sending.join(SECONDS_TO_STOP)


traces = Traces()


@lru_cache(maxsize=512)
def describe_statement(sql: str) -> tuple[str, dict[str, str]]:
    """The name and attributes of a statement: <https://opentelemetry.io/docs/specs/semconv/db/postgresql/>."""
    operation, table = found.groups() if (found := _SUMMARY.match(sql)) else ("SQL", None)
    summary = " ".join(filter(None, (operation.upper(), table)))
    attributes = {
        "db.system.name": "postgresql",
        "db.query.text": sql,
        "db.query.summary": summary,
        "db.operation.name": operation.upper(),
    }
    return summary, attributes
