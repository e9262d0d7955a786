"""The service's metrics, for Prometheus: summed over all processes, without anything that names a user."""

import fcntl
import os
import time
from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any

from django.http import HttpRequest, HttpResponse
from django.views import View
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from config.http.lanes import Lane
from config.http.middleware import Middleware
from config.http.request_state import Spent, get_state, present_state
from config.http.url_map import simplify_route
from config.server.logs import Answered, log_answer
from config.server.tracing import Trace, traces

# The name that prometheus-client reads, too.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_REQUESTS = Counter("http_requests", "Requests answered.", ["route", "method", "status"])
_DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from the beginning of a request to its answer, also while others are run.",
    ["route", "method"],
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 5),
)
# None of the metrics is without a label: its value would be made before `share` says where it is kept.
_STATEMENTS = Counter("database_statements", "Statements that requests have sent.", ["lane"])
_STATEMENT_SECONDS = Counter("database_statement_seconds", "Time that requests have waited for statements.", ["lane"])
_LOCK_TIMEOUTS = Counter(
    "database_lock_timeouts", "Statements that were ended because they waited for a lock.", ["lane"]
)
# Of a file, of an address that leads nowhere, and of a request that was not run.
NO_ROUTE = "none"
# Under another server than `serve`.
NO_LANE = "none"
LANE_EVENTS = Counter(
    "lane_events", "Requests that a lane did not simply run, by what became of them.", ["lane", "event"]
)
QUEUE_LENGTH = Gauge("lane_queue_length", "Requests that wait in a lane.", ["lane"], multiprocess_mode="sum")
QUEUE_AGE = Gauge(
    "lane_queue_age_seconds", "How long the oldest one of them has waited.", ["lane"], multiprocess_mode="max"
)
WORKER_STARTS = Counter("worker_starts", "Processes of a lane that were started, by why.", ["lane", "cause"])
# A method is the client's to choose, and each value of a label stays in memory for ever.
_METHODS = {name.upper() for name in View.http_method_names}
# Looked up by the library in a way that takes longer than to count.
_requests, _duration = cache(_REQUESTS.labels), cache(_DURATION.labels)
_statements, _statement_seconds = cache(_STATEMENTS.labels), cache(_STATEMENT_SECONDS.labels)
_held: list[IO[str]] = []


class MetricsMiddleware(Middleware):
    """Counts each request by the route that answered it, writes its line in the log, and reports its trace.

    The route is `none` for files, and for addresses that lead nowhere.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began, state = time.perf_counter(), get_state(request.META)
        if traces.is_on:
            state.spent = Trace(request.META, began)
        token = present_state.set(state)
        try:
            response = self.get_response(request)
        finally:
            present_state.reset(token)
            if state.spent.statements:
                _count_statements(state.spent, state.lane or NO_LANE)
        record(request.META, response.status_code, response.headers, began, request=request)
        return response


def record(
    environ: MutableMapping[str, Any],
    status: int,
    headers: Mapping[str, str],
    began: float,
    *,
    request: Any = None,
) -> None:
    """Counts an answer, writes its line in the log, and reports its trace.

    Args:
        environ: the WSGI environment of the request.
        status: of the answer.
        headers: of the answer.
        began: when the request began, by `time.perf_counter`.
        request: Django's, where there is one.
    """
    seconds, state = time.perf_counter() - began, get_state(environ)
    match = request and request.resolver_match
    route = simplify_route(match.route) if match else NO_ROUTE
    method = environ["REQUEST_METHOD"]
    known = method if method in _METHODS else "OTHER"
    answered = Answered(environ, state, status, headers, route, known, seconds, request)
    if traces.is_on:
        spent = state.spent if isinstance(state.spent, Trace) else Trace(environ, began)
        spent.end(answered)
    _requests(route, known, status).inc()
    _duration(route, known).observe(seconds)
    log_answer(answered)


def _count_statements(spent: Spent, lane: str) -> None:
    _statements(lane).inc(spent.statements)
    _statement_seconds(lane).inc(spent.seconds)
    if spent.lock_timeouts:
        _LOCK_TIMEOUTS.labels(lane).inc(spent.lock_timeouts)


def share() -> None:
    """Keeps the counts of this process in the folder of all processes; call it before the first request.

    Each process writes files of its own, which outlive it. The process that replaces a dead one continues
    its files, so their number does not grow however often processes die.
    """
    slot = str(_free_slot(Path(os.environ[FOLDER])))
    values.ValueClass = build_value_class(slot)


class StartCause(StrEnum):
    """Why a process is started: somebody has started, replaced or reloaded the service, or another process has died."""

    PLAN = "plan"
    DEATH = "death"


def start(lane: Lane, cause: StartCause) -> None:
    """Shares the counts of a new process of a lane.

    What happens rarely begins at 0: Prometheus sees no increase in a counter that appears with its first event. The
    gauges may belong to a process that died.
    """
    from config.api.limits import quotas
    from config.api.writing import idempotency
    from config.audit import trail

    share()
    for counter, values_of_label in (
        (trail.COUNTED, trail.EVENTS),
        (quotas.REFUSALS, quotas.POLICIES),
        (quotas.UNCOUNTED, quotas.POLICIES),
        (idempotency.REPEATED, idempotency.OUTCOMES),
    ):
        for value in values_of_label:
            counter.labels(value)
    QUEUE_LENGTH.labels(Lane.SLOW.value).set(0)
    QUEUE_AGE.labels(Lane.SLOW.value).set(0)
    LANE_EVENTS.labels(Lane.SLOW.value, "dropped")
    for name in (Lane.FAST.value, Lane.SLOW.value):
        LANE_EVENTS.labels(name, "refused")
        _LOCK_TIMEOUTS.labels(name)
        for each in StartCause:
            WORKER_STARTS.labels(name, each.value)
    WORKER_STARTS.labels(lane.value, cause.value).inc()


def build_value_class(slot: str) -> Any:
    """The library's class of values, which are stored in the files of a slot, but one that counts by one addition."""
    value_class: Any = values.MultiProcessValue(lambda: slot)

    class Value(value_class):
        # A process calls `share` when it has been forked, no other process writes its files, and CPython lets no other
        # thread run between a subscript that is read and the same one written. A file that grows is mapped again:
        # existing values continue to use the older mapping, of the same pages. The library's own copy stays as it was;
        # `exposition` reads the files.
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            position = self._file._positions[self._key]
            self._number = memoryview(self._file._m)[position : position + 8].cast("d")

        def inc(self, amount: float) -> None:
            self._number[0] += amount

    return Value


def _free_slot(folder: Path) -> int:
    """The first number that no living process has. The kernel gives it back, however its process ends."""
    for slot in count():
        file = (folder / f"{slot}.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            _held.append(file)
            return slot
    raise AssertionError


def exposition() -> bytes:
    """All that was counted, in Prometheus' text format: of all processes, or where none are shared, of this one."""
    if FOLDER not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)
