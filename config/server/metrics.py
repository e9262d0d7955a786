"""What the service counts about itself, for Prometheus: summed over all processes, and nothing that names a user."""

import fcntl
import os
import re
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any

from django.contrib.admindocs.views import simplify_regex
from django.http import HttpRequest, HttpResponse
from django.views import View
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from config.http.middleware import GetResponse

# What it is called by prometheus-client, which reads it too.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_REQUESTS = Counter("http_requests", "Requests answered.", ["route", "method", "status"])
_DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from the beginning of a request to its answer, also while others were gone on with.",
    ["route", "method"],
    buckets=(0.005, 0.025, 0.1, 0.5, 1, 5),
)
# A method is the client's to choose, and each value of a label is kept for ever.
_METHODS = {name.upper() for name in View.http_method_names}
# In `<version:version>`, which Django does not take out.
_CONVERTER = re.compile(r"<\w+:")
# Looked up by the library in a way that takes longer than to count.
_requests, _duration = cache(_REQUESTS.labels), cache(_DURATION.labels)
_held: list[IO[str]] = []


class MetricsMiddleware:
    """Counts each request by the route that answered it; `none` is for files, and for addresses that lead nowhere."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - began
        route = _template(request.resolver_match.route) if request.resolver_match else "none"
        method = request.method if request.method in _METHODS else "OTHER"
        _requests(route, method, response.status_code).inc()
        _duration(route, method).observe(seconds)
        return response


@cache
def _template(route: str) -> str:
    return simplify_regex(_CONVERTER.sub("<", route))


def share() -> None:
    """Keeps the counts of this process in the folder of all processes; call it before the first request.

    Each process writes files of its own, which outlive it. The process that takes the place of a dead one goes on
    with its files, so their number does not grow however often processes die.
    """
    slot = str(_free_slot(Path(os.environ[FOLDER])))
    values.ValueClass = build_value_class(slot)


def build_value_class(slot: str) -> Any:
    """The library's class of values, which are kept in the files of a slot."""
    return values.MultiProcessValue(lambda: slot)


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
    """All metrics in Prometheus' text format: of all processes, or where none are shared, of this one."""
    if FOLDER not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)
