"""Clients that send and read as slowly as they may (Debian's slowhttptest), and what becomes of all others."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context

from tests.load.arrivals import Plan, offer
from tests.load.cases import Found
from tests.load.ways import Way, build_requests, ways
from tests.load.world import World

CLIENTS = 400
RATE = 200.0
# Shorter than the 15 s after which nginx, and the service for bodies, end a slow request.
SECONDS = 8.0
# For anybody, and longer than the buffers between two processes of one machine.
LONG_ANSWER, LEAST_LENGTH = "/openapi.json", 256 * 1024
MIN_SUCCESS = 0.999
# Headers, bodies, answers: the path, and the options of slowhttptest beside those of all.
KINDS: dict[str, tuple[str, Sequence[str]]] = {
    "headers": ("/api/v2/posts", ("-H", "-i", "5")),
    "bodies": ("/api/v2/orders", ("-B", "-i", "5", "-s", "8192", "-t", "POST")),
    "answers": (LONG_ANSWER, ("-X", "-w", "1", "-y", "10", "-n", "5", "-z", "1", "-k", "3")),
}


def slow_clients(world: World) -> Found:
    """Sends a steady mix of requests beside each kind of slow clients, directly and behind the proxy of deploy/."""
    found, requests = Found(), build_requests(world.target)
    with urllib.request.urlopen(f"http://127.0.0.1:{world.target.port}{LONG_ANSWER}") as response:
        assert len(response.read()) > LEAST_LENGTH
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, closing(ways(world.target)) as each_way:
        for way in each_way:
            for kind in KINDS:
                with _slow(way, kind) as slow:
                    plan = Plan(way.port, requests, RATE, SECONDS, 100, way.authority)
                    outcomes = pool.submit(offer, plan).result().outcomes
                    if slow.poll() is not None:
                        found.broken.append(f"{way.name}: the slow clients of {kind} did not stay")
                found.statuses.update(outcome.status for outcome in outcomes)
                success = sum(outcome.status in {200, 201} for outcome in outcomes) / len(outcomes)
                longest = max(outcome.seconds for outcome in outcomes)
                text = f"{way.name} beside slow {kind}: {success:.2%} answered, the last after {longest * 1000:.0f} ms"
                found.notes.append(text)
                if success < MIN_SUCCESS:
                    found.broken.append(f"{text} < {MIN_SUCCESS:.1%}")
    return found


@contextmanager
def _slow(way: Way, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    program = shutil.which("slowhttptest")
    assert program, "This case needs slowhttptest (apt install slowhttptest)."
    path, options = KINDS[kind]
    origin = f"https://localhost:{way.port}" if way.authority else f"http://127.0.0.1:{way.port}"
    command = [program, "-c", str(CLIENTS), "-r", str(CLIENTS), "-l", "60", "-p", "5", "-u", origin + path, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(2)
        try:
            yield process
        finally:
            process.kill()
