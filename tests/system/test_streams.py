"""Streams over real connections: complete ones, and those that must not seem to be."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any

import psutil
import psycopg
import pytest

from tests.service import LONG_POSTS, Copy, Service, ask, long_posts, wait_for
from tests.system.overridden_settings import override
from tests.system.test_slow_lane import get_slow_process

NDJSON = "application/x-ndjson"
USERS = 20_000
STALL_SECONDS = 6
MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def single(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    """One worker, so that whatever is sent meets in it."""
    running = Service(checkout, WORKERS="1", **override(MAX_STREAM_STALL_SECONDS=STALL_SECONDS))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def posts(single: Service) -> Iterator[str]:
    """The address of a long list."""
    with long_posts(single.copy):
        yield "/api/v2/posts?q=long"


class Stream:
    """A request for a stream, on a connection of its own, of which the system keeps little."""

    def __init__(
        self,
        service: Service,
        key: dict[str, str],
        path: str,
        *,
        version: str = "1.1",
        accept: str = NDJSON,
    ) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", service.port))
        credential = "".join(f"{name}: {value}\r\n" for name, value in key.items())
        self.socket.sendall(
            f"GET {path} HTTP/{version}\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n{credential}"
            "Connection: close\r\n\r\n".encode()
        )
        self.received = b""

    def read_some(self, least: int = 64 * 1024) -> None:
        while len(self.received) < least:
            piece = self.socket.recv(64 * 1024)
            assert piece, self.received[-300:]
            self.received += piece

    def is_cut(self) -> bool:
        """Reads to the end. Whether that came before the last chunk."""
        try:
            while piece := self.socket.recv(256 * 1024):
                self.received += piece
                if len(self.received) > 4096:
                    self.received = self.received[:2048] + self.received[-2048:]
        except ConnectionResetError:
            return True
        finally:
            self.socket.close()
        return not self.has_proper_end

    @property
    def has_proper_end(self) -> bool:
        return self.received.endswith(b"0\r\n\r\n")


@pytest.fixture
def open_stream() -> Iterator[Callable[..., Stream]]:
    """Requests a stream. Whatever becomes of the test, none is left to the next one."""
    with ExitStack() as opened:

        def open_one(*arguments: Any, **options: Any) -> Stream:
            stream = Stream(*arguments, **options)
            opened.enter_context(stream.socket)
            return stream

        yield open_one


def wait_for_place(service: Service, key: dict[str, str]) -> None:
    """Until nothing is left of an earlier stream."""
    wait_for(lambda: ask(service, "/api/v2/users?fields=id", **key, Accept=NDJSON).status == 200, 10)


def test_short_list_is_an_ordinary_response(single: Service, key: dict[str, str]) -> None:
    connection = HTTPConnection("127.0.0.1", single.port, timeout=20)
    with closing(connection):
        for _ in range(3):
            connection.request("GET", "/api/v2/users?id=1", headers={**key, "Accept": "text/csv"})
            response = connection.getresponse()
            content = response.read()
            assert (response.status, int(response.headers["Content-Length"])) == (200, len(content))
            assert content.startswith(b"id,name,")
        connection.request("HEAD", "/api/v2/users", headers={**key, "Accept": NDJSON})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        assert int(response.headers["X-Total-Count"]) > 0
        assert response.headers.get("Content-Length") in {None, ""}


def test_connection_goes_on_after_a_stream(single: Service, key: dict[str, str], posts: str) -> None:
    connection = HTTPConnection("127.0.0.1", single.port, timeout=60)
    with closing(connection):
        for _ in range(2):
            connection.request("GET", posts, headers={**key, "Accept": NDJSON})
            assert connection.getresponse().read().count(b"\n") == LONG_POSTS
            connection.request("GET", "/api/v2/users/1", headers=key)
            assert json.loads(connection.getresponse().read())["data"]["id"] == 1


def test_memory_does_not_grow_with_a_client_that_reads_slowly(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    (worker,) = single.workers()
    processes = [psutil.Process(worker), get_slow_process(single)]
    ask(single, posts, **key, Accept=NDJSON)
    before = [process.memory_info().rss for process in processes]
    stream = open_stream(single, key, posts)
    stream.read_some()
    # The slow process has one piece behind it, in the memory of the thread that has this stream.
    before[1] = processes[1].memory_info().rss
    time.sleep(1)
    grown = [process.memory_info().rss - then for process, then in zip(processes, before, strict=True)]
    assert max(grown) < 15 * MEBIBYTE
    assert not stream.is_cut()


def test_client_that_does_not_read_is_cut(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    stream = open_stream(single, key, posts)
    stream.read_some()
    assert ask(single, posts, **key, Accept=NDJSON).status == 429
    wait_for_place(single, key)
    assert stream.is_cut()


def test_client_that_leaves_makes_room_at_once(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    for _ in range(3):
        stream = open_stream(single, key, posts)
        stream.read_some()
        stream.socket.close()
        began = time.monotonic()
        wait_for_place(single, key)
        assert time.monotonic() - began < STALL_SECONDS - 1


def test_stream_whose_database_fails_is_cut(
    open_stream: Callable[..., Stream],
    single: Service,
    key: dict[str, str],
    posts: str,
    database: psycopg.Connection,
) -> None:
    stream = open_stream(single, key, posts)
    stream.read_some()
    assert database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND pid <> pg_backend_pid()"
    ).fetchall()
    assert stream.is_cut()
    assert ask(single, "/api/v2/users/1", **key).status == 200


def test_stream_whose_process_dies_is_cut_and_the_worker_is_replaced(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    (worker,) = single.workers()
    stream = open_stream(single, key, posts)
    stream.read_some()
    get_slow_process(single).kill()
    assert stream.is_cut()
    wait_for(lambda: single.workers() not in ([], [worker]) and single.status() == 200, 10)
    assert ask(single, posts, **key, Accept=NDJSON).content.count(b"\n") == LONG_POSTS


def test_stream_is_completed_while_workers_are_replaced(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    (worker,) = single.workers()
    stream = open_stream(single, key, posts)
    stream.read_some()
    single.process.send_signal(signal.SIGHUP)
    wait_for(lambda: single.workers() not in ([], [worker]) and single.status() == 200, 10)
    assert not stream.is_cut()


def test_stream_is_completed_although_the_service_is_stopped(
    open_stream: Callable[..., Stream], checkout: Copy, single: Service, key: dict[str, str], posts: str
) -> None:
    stopped = Service(checkout, WORKERS="1")
    stream = open_stream(stopped, key, posts)
    stream.read_some()
    stopped.process.terminate()
    time.sleep(0.3)
    assert not stream.is_cut()
    # Not by a second signal, which may find a process that handles none any more.
    assert stopped.process.wait(20) == 0
    stopped.stop()


def test_stream_in_http_1_0_is_refused_in_words_and_a_short_list_is_not(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str
) -> None:
    """Nothing would tell a stream that is cut from a complete one."""
    refused = open_stream(single, key, posts, version="1.0")
    refused.is_cut()
    assert refused.received.startswith(b"HTTP/1.0 400 ")
    assert b"HTTP/1.1" in refused.received.partition(b"\r\n\r\n")[2]
    short = open_stream(single, key, "/api/v2/users?id=1", version="1.0")
    short.is_cut()
    assert short.received.startswith(b"HTTP/1.0 200 ")


def test_few_streams_of_a_worker_leave_room_for_other_slow_requests(
    open_stream: Callable[..., Stream], single: Service, key: dict[str, str], posts: str, database: psycopg.Connection
) -> None:
    emails = database.execute("SELECT email FROM users_user WHERE role = 'user' ORDER BY id LIMIT 2").fetchall()
    others = [single.copy.manage("create_api_key", email).stdout.strip() for (email,) in emails]
    keys = [key, *({"X-API-Key": other} for other in others)]
    # An unknown credential counts for its address, and all of an address for one caller.
    assert [ask(single, "/api/v2/posts?limit=1", **each).status for each in keys] == [200] * 3
    running = [open_stream(single, each, posts) for each in keys[:2]]
    for stream in running:
        stream.read_some()
    began = time.monotonic()
    refused = ask(single, posts, **keys[2], Accept=NDJSON)
    page = ask(single, "/api/v2/users", **keys[2], Accept="text/html")
    seconds = time.monotonic() - began
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    assert page.status == 200
    # Whatever waits for a client that does not read waits until that one is cut off.
    assert seconds < STALL_SECONDS - 1
