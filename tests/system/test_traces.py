"""Traces of the service as it runs, taken by a collector in this process that speaks OTLP over HTTP."""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.service import Copy, Service, ask, wait_for
from tests.test_settings import PRODUCTION

PASSWORD = "four plain words here"
EMAIL = "traced-person@example.net"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{PARENT}-01"


class Collector:
    """What a collector is told, on a port of its own; it can be away, or never answer."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.answers = threading.Event()
        self.answers.set()
        self.port = 0
        self.open()

    def open(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
                collector.take(self.path, body)
                collector.answers.wait()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        ThreadingHTTPServer.daemon_threads = True
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        self.bodies.append(body)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(read(group.resource.attributes))
            self.spans += [span for scope in group.scope_spans for span in scope.spans]

    def wait_for_trace(self, request_id: str) -> tuple[Span, list[Span]]:
        """The span of a request, and the others of its trace."""

        def find() -> Span | None:
            ids = ("http.response.header.request-id", [request_id])
            return next((span for span in self.spans if ids in read(span.attributes).items()), None)

        wait_for(find)
        root = find()
        assert root is not None
        # It ends last, and so comes last.
        return root, [span for span in self.spans if span.trace_id == root.trace_id and span is not root]


def read(attributes: Any) -> dict[str, Any]:
    found = {}
    for attribute in attributes:
        kind = attribute.value.WhichOneof("value")
        value = getattr(attribute.value, kind)
        found[attribute.key] = [each.string_value for each in value.values] if kind == "array_value" else value
    return found


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.answers.set()
    running.close()


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast_path", "reference"])
def single(request: Any, checkout: Copy, first_start: list[str], collector: Collector) -> Iterator[Service]:
    running = Service(
        checkout,
        WORKERS="1",
        FAST_PATH=request.param,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.port}",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
        OTEL_BSP_SCHEDULE_DELAY="50",
    )
    yield running
    running.stop()


def find_line(service: Service, request_id: str) -> dict[str, Any]:
    def find() -> dict[str, Any] | None:
        lines = service.log.read_text().splitlines()
        return next((line for line in map(json.loads, lines) if line["request_id"] == request_id), None)

    wait_for(find)
    line = find()
    assert line is not None
    return line


def test_request_is_a_trace_with_a_span_for_each_of_its_statements(
    single: Service, key: dict[str, str], collector: Collector, request: Any
) -> None:
    request_id = f"read-{time.time_ns()}"
    response = ask(single, "/api/v1/users?status=active&limit=3", **key, Traceparent=SENT, X_Request_Id=request_id)
    assert response.status == 200
    root, statements = collector.wait_for_trace(request_id)
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert (root.name, root.kind) == ("GET /api/v<version>/users", Span.SPAN_KIND_SERVER)
    assert read(root.attributes) == {
        "http.request.method": "GET",
        "http.route": "/api/v<version>/users",
        "http.response.status_code": 200,
        "http.response.header.request-id": [request_id],
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        # Without the fast path, everything runs in the process beside the worker.
        "lane": "slow" if "reference" in request.node.name else "fast",
    }
    assert root.status.code == Status.STATUS_CODE_UNSET
    line = find_line(single, request_id)
    mine = [span for span in statements if span.parent_span_id == root.span_id]
    assert len(mine) == line["statements"] > 0
    for span in mine:
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert root.start_time_unix_nano <= span.start_time_unix_nano < span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
        told = read(span.attributes)
        assert told["db.system.name"] == "postgresql"
        assert told["db.query.text"]
        assert span.name == told["db.query.summary"]
    assert any('FROM "users_user"' in read(span.attributes)["db.query.text"] for span in mine)
    milliseconds = (root.end_time_unix_nano - root.start_time_unix_nano) / 1e6
    assert milliseconds == pytest.approx(line["duration_ms"], abs=0.1)
    assert abs(time.time_ns() - root.end_time_unix_nano) < 30e9


# What comes before the first statement takes its time, and the wall clock is set back while the statement runs.
CLOCKS = """
import time
from types import SimpleNamespace
from unittest import mock
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from config.server.logs import Answered
from config.server.tracing import Trace, traces
spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
traces.tracer = provider.get_tracer("test")
before, began = time.time_ns(), time.perf_counter()
time.sleep(0.01)
trace = Trace({}, began)
with mock.patch.object(time, "time_ns", lambda: 0):
    time.sleep(0.01)
    trace.add("SELECT 1", 0.005)
    state = SimpleNamespace(lane="fast")
    environ = {"wsgi.url_scheme": "http"}
    trace.end(Answered(environ, state, 200, {}, "none", "GET", time.perf_counter() - began, None))
statement, root = spans.get_finished_spans()
moments = (root.start_time, statement.start_time, statement.end_time, root.end_time)
print(*(moment - before for moment in moments))
"""


def test_spans_of_a_trace_are_measured_by_one_clock(checkout: Copy) -> None:
    made = checkout.manage("shell", "-v", "0", "-c", CLOCKS, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert made.returncode == 0, made.stderr
    began, asked, answered, ended = (int(each) / 1e6 for each in made.stdout.split())
    assert began == pytest.approx(0, abs=1)
    assert answered - asked == pytest.approx(5, abs=0.001)
    assert 20 <= answered <= ended < answered + 5


def test_caller_who_does_not_sample_has_no_trace(single: Service, key: dict[str, str], collector: Collector) -> None:
    trace = f"{time.time_ns():032x}"
    ask(single, "/api/v1/users/1", **key, Traceparent=f"00-{trace}-{PARENT}-00")
    request_id = f"after-{time.time_ns()}"
    ask(single, "/api/v1/users/1", **key, X_Request_Id=request_id)
    collector.wait_for_trace(request_id)
    assert bytes.fromhex(trace) not in {span.trace_id for span in collector.spans}


def test_collector_is_told_no_secret(single: Service, key: dict[str, str], collector: Collector) -> None:
    (secret,) = key.values()
    marker = f"marked-{time.time_ns()}"
    email = f"{marker}@example.net"
    ask(single, "/api/v1/users", "POST", {"name": marker, "email": email, "password": PASSWORD}, **key)
    ask(single, f"/api/v1/users?api_key={secret}&email={email}")
    ask(single, f"/api/v2/users?q={marker}", **key)
    pair = ask(single, "/api/login", "POST", {"email": email, "password": PASSWORD}).json()
    tokens = [pair["data"]["access_token"], pair["data"]["refresh_token"]]
    ask(single, "/api/v1/orders", "POST", {"item": marker, "qty": 1}, Authorization=f"Bearer {tokens[0]}")
    ask(single, "/api/token/refresh", "POST", {"refresh_token": tokens[1]})
    ask(single, "/api/v1/users", "POST", {"name": marker, "email": email}, **key)
    request_id = f"last-{time.time_ns()}"
    ask(single, "/api/login", "POST", {"email": email, "password": f"{marker} wrong"}, X_Request_Id=request_id)
    collector.wait_for_trace(request_id)
    everything = b"".join(collector.bodies)
    assert len(everything) > 1000
    for text in (secret, PASSWORD, marker, email, *tokens, "secret-path", "secret-query", EMAIL):
        assert text.encode() not in everything, text


def test_collector_that_is_away_or_silent_costs_requests_nothing(
    single: Service, key: dict[str, str], collector: Collector
) -> None:
    def is_quick() -> bool:
        """Each of them would take the exporter's second if it waited."""
        began = time.monotonic()
        statuses = {ask(single, "/api/v1/users/1", **key).status for _ in range(50)}
        return statuses == {200} and time.monotonic() - began < 10

    def find_others() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in single.log.read_text().splitlines()]
        return [line for line in lines if line["logger"] not in {"request", "audit"}]

    collector.close()
    assert is_quick()
    wait_for(lambda: len(find_others()) > 0)
    collector.answers.clear()
    collector.open()
    assert is_quick()
    collector.answers.set()
    request_id = f"back-{time.time_ns()}"
    ask(single, "/api/v1/users/1", **key, X_Request_Id=request_id)
    collector.wait_for_trace(request_id)
    assert [line for line in find_others() if not line["logger"].startswith("opentelemetry.")] == []


def test_spans_that_wait_are_sent_before_the_service_ends(checkout: Copy, first_start: list[str]) -> None:
    told = Collector()
    running = Service(
        checkout,
        WORKERS="2",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{told.port}",
        OTEL_BSP_SCHEDULE_DELAY="60000",
        OTEL_SERVICE_NAME="named-otherwise",
    )
    try:
        ids = {f"end-{number}" for number in range(20)}
        for number, each in enumerate(ids):
            # The half of them is slow.
            options: dict[str, Any] = (
                {"method": "POST", "body": {"email": EMAIL, "password": PASSWORD}} if number % 2 else {}
            )
            path = "/api/login" if number % 2 else "/api/v1/users"
            assert ask(running, path, **options, X_Request_Id=each).status in {401, 429}
        assert running.stop() == 0
    finally:
        told.close()
    found = {read(span.attributes).get("http.response.header.request-id", [""])[0] for span in told.spans}
    assert ids <= found
    assert {resource["service.name"] for resource in told.resources} == {"named-otherwise"}


# --- The setting


@contextmanager
def without_packages(copy: Copy) -> Iterator[None]:
    """The copy's environment as requirements.txt alone makes it."""
    library = copy.folder / ".venv/lib"
    original = library.readlink()
    library.unlink()
    packages = library / f"python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    packages.mkdir(parents=True)
    for path in Path(original).glob("python*/site-packages/*"):
        if not path.name.startswith("opentelemetry"):
            (packages / path.name).symlink_to(path)
    yield


def test_setting_without_the_packages_stops_the_start(fresh_checkout: Copy) -> None:
    with without_packages(fresh_checkout):
        wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
        assert fresh_checkout.manage("version", **PRODUCTION).returncode == 0
        refused = fresh_checkout.manage("version", **PRODUCTION, **wanted)
    assert refused.returncode != 0
    assert refused.stderr == (
        "OTEL_EXPORTER_OTLP_ENDPOINT: Tracing requires more packages: .venv/bin/python -m pip install --require-hashes "
        "--no-deps -r requirements-otel.txt (docs/settings.md lists the variables)\n"
    )
