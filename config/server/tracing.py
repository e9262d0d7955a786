"""The trace of each request, sent to a collector by OpenTelemetry's protocol (OTLP), where a setting asks for it.

Spans are made when a request is over, of the times that were noted meanwhile. So a request that is not sampled makes
none, and where the setting asks for no traces, nothing is noted and OpenTelemetry is not imported. The names of
attributes are those of its semantic conventions. No span has an address, a query, a header of the client or the values
of a statement.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from threading import Thread
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.hashers import get_hasher

from config.http.request_state import RequestState, Spent, present_state

if settings.TRACING:
    # Before workers are forked, which share it.
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanKind, StatusCode

logger = logging.getLogger(__name__)

# Of a request; an import of a thousand rows would take the room of others.
MAX_STEPS = 500
# For what is left when a process stops, however slow the collector is. `serve` kills a worker after 20 s.
SECONDS_TO_STOP = 2.0
# OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES, says otherwise.
DEFAULT_NAME = "users-resource-service"
_UNNAMED = "unknown_service"
# They write a line for each batch that the collector does not take, and for each span that is left out meanwhile.
_TALKATIVE = ("opentelemetry.exporter.otlp.proto.http", "opentelemetry.sdk._shared_internal")
_HASH = "password hash"
_OPERATION = re.compile(r"\s*(\w+)")
_TARGET = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+(?:ONLY\s+)?"?(\w+)|\b(pg_(?:try_)?advisory_\w+)\(', re.IGNORECASE)
# Both wait for whoever has the lock. `SKIP LOCKED` and pg_try_advisory_xact_lock do not.
_LOCKS = {
    "advisory": re.compile(r"\bpg_advisory_\w+\("),
    "row": re.compile(r"\bFOR (?:NO KEY )?(?:UPDATE|(?:KEY )?SHARE)\b(?!.*\bSKIP LOCKED\b)", re.DOTALL),
}


class Step(NamedTuple):
    """What a request has waited for: a statement, or a hash.

    Attributes:
        name: of what has no SQL.
        began: by `time.perf_counter`, which on one machine is the same in all processes.
        ended: likewise.
        sql: of a statement, without its values.
        error: the class and the SQLSTATE of what it met.
    """

    name: str
    began: float
    ended: float
    sql: str = ""
    error: tuple[str, str | None] | None = None


class Trace(Spent):
    """What a request has asked of the database and of hashes, with the time of each."""

    __slots__ = ("_error", "left_out", "steps")

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.left_out = 0
        self._error: tuple[str, str | None] | None = None

    def add(self, statements: Sequence[Sequence[Any]], began: float, seconds: float) -> None:
        super().add(statements, began, seconds)
        error, self._error = self._error, None
        for sql, *_ in statements:
            # psycopg takes objects, too, whose text may hold values.
            text = sql if isinstance(sql, str) else type(sql).__name__
            self.note(Step("", began, began + seconds, text, error))

    def fail(self, error: BaseException | None) -> None:
        super().fail(error)
        self._error = (type(error).__name__, getattr(error, "sqlstate", None))

    def note(self, step: Step) -> None:
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)
        else:
            self.left_out += 1


class Answered(NamedTuple):
    """What is told of a request that was answered.

    Attributes:
        environ: its WSGI environment.
        state: its state.
        status: of the answer.
        headers: of the answer.
        route: the template of its address; None where it leads nowhere.
        method: None where HTTP knows none of this name.
        scheme: as the client sees it.
    """

    environ: Mapping[str, Any]
    state: RequestState
    status: int
    headers: Mapping[str, str]
    route: str | None
    method: str | None
    scheme: str


class Traces:
    """The traces of this process.

    Attributes:
        is_on: whether they are sent.
    """

    is_on = False

    def start(self) -> None:
        """Begins to send traces where the settings say where to. Call it after a fork: a thread sends them."""
        if not settings.TRACING:
            return
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._provider = TracerProvider(resource=_build_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_build_exporter()))
        self._tracer = self._provider.get_tracer(__name__)
        _time_hashes()
        self.is_on = True

    def stop(self) -> None:
        """Sends what is left, as far as the collector takes it in time."""
        if self.is_on:
            self.is_on = False
            sending = Thread(target=self._provider.shutdown, daemon=True)
            sending.start()
            sending.join(SECONDS_TO_STOP)

    def report(self, answered: Answered, began: float, seconds: float) -> None:
        """Makes the spans of a request.

        Args:
            answered: the request and its answer.
            began: when it began, by `time.perf_counter`.
            seconds: that it took.
        """
        present = answered.state.spent
        steps = present.steps if isinstance(present, Trace) else []
        offset = time.time_ns() - time.perf_counter_ns()
        parent = propagate.extract(
            {
                name: value
                for name in ("traceparent", "tracestate")
                if (value := answered.environ.get(f"HTTP_{name.upper()}"))
            }
        )
        span = self._tracer.start_span(
            f"{answered.method or 'HTTP'} {answered.route}" if answered.route else answered.method or "HTTP",
            parent,
            SpanKind.SERVER,
            _describe(answered),
            start_time=offset + int(1e9 * began),
        )
        if span.is_recording():
            if answered.status >= 500:
                span.set_status(StatusCode.ERROR)
            if isinstance(present, Trace) and present.left_out:
                span.set_attribute("spans.left_out", present.left_out)
            self._make_spans(steps, trace.set_span_in_context(span), offset)
        span.end(offset + int(1e9 * (began + seconds)))

    def _make_spans(self, steps: Sequence[Step], parent: Context, offset: int) -> None:
        for step in steps:
            started = offset + int(1e9 * step.began)
            if step.sql:
                name, attributes = describe_statement(step.sql)
                span = self._tracer.start_span(name, parent, SpanKind.CLIENT, attributes, start_time=started)
            else:
                span = self._tracer.start_span(step.name, parent, start_time=started)
            if step.error:
                kind, code = step.error
                span.set_attribute("error.type", kind)
                if code:
                    span.set_attribute("db.response.status_code", code)
                span.set_status(StatusCode.ERROR)
            span.end(offset + int(1e9 * step.ended))


traces = Traces()


def _describe(answered: Answered) -> dict[str, Any]:
    """The attributes of a request: <https://opentelemetry.io/docs/specs/semconv/http/http-spans/>."""
    attributes = {
        "http.request.method": answered.method or "_OTHER",
        "url.scheme": answered.scheme,
        "http.response.status_code": answered.status,
        "network.protocol.version": answered.environ.get("SERVER_PROTOCOL", "").removeprefix("HTTP/"),
    }
    if answered.route:
        attributes["http.route"] = answered.route
    if request_id := answered.headers.get("Request-Id"):
        attributes["http.response.header.request-id"] = [request_id]
    if answered.state.lane:
        attributes["lane"] = answered.state.lane
    if answered.status >= 500:
        attributes["error.type"] = str(answered.status)
    return attributes


@lru_cache(maxsize=512)
def describe_statement(sql: str) -> tuple[str, dict[str, str]]:
    """The name and attributes of a statement: <https://opentelemetry.io/docs/specs/semconv/db/postgresql/>.

    What waits for a lock has the attribute `lock`, `advisory` or `row`: the wait is a part of its duration.
    """
    operation = found[1].upper() if (found := _OPERATION.match(sql)) else "SQL"
    target = found[1] or found[2] if (found := _TARGET.search(sql)) else ""
    summary = f"{operation} {target}".strip()
    attributes = {
        "db.system.name": "postgresql",
        "db.query.text": sql,
        "db.query.summary": summary,
        "db.operation.name": operation,
    }
    for lock, pattern in _LOCKS.items():
        if pattern.search(sql):
            attributes["lock"] = lock
    return summary, attributes


def _build_resource() -> Resource:
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith(_UNNAMED):
        return resource.merge(Resource({SERVICE_NAME: DEFAULT_NAME}))
    return resource


def _build_exporter() -> SpanExporter:
    class Exporter(OTLPSpanExporter):
        """OpenTelemetry's, which tells the log once when the collector begins to take no spans, and when it ends."""

        has_failed = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            has_failed = result is not SpanExportResult.SUCCESS
            if has_failed and not self.has_failed:
                logger.warning("The collector takes no traces; they are left out until it does.")
            elif self.has_failed and not has_failed:
                logger.warning("The collector takes traces again.")
            self.has_failed = has_failed
            return result

    return Exporter()


def _time_hashes() -> None:
    """Has each password hash noted, with the wait for the one before it in this process."""
    hasher = type(get_hasher())
    for name in ("encode", "verify"):
        setattr(hasher, name, _time(getattr(hasher, name)))


def _time(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        result = function(*arguments, **options)
        state = present_state.get()
        if state is not None and isinstance(state.spent, Trace):
            state.spent.note(Step(_HASH, began, time.perf_counter()))
        return result

    return run
