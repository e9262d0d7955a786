"""The closed loop of the benchmarks."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.load import Generator

LAST = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


@contextmanager
def serving(*answers: bytes) -> Iterator[tuple[int, list[int]]]:
    """A server that gives these answers on each connection, and closes it. Yields its port and its connections."""
    accepted: list[int] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            for answer in answers:
                if connection.recv(1000):
                    connection.sendall(answer)
            # Closed with something unread, it would be reset.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1000):
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            accepted.append(connection.fileno())
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1], accepted
        listening.shutdown(socket.SHUT_RDWR)


def test_load_connects_anew_where_an_answer_says_that_the_connection_is_closed() -> None:
    kept = LAST.replace(b"connection: close", b"connection: keep-alive")
    with serving(kept, LAST) as (port, accepted):
        load = Generator().run(port, [REQUEST], 1, 0.1)
    # The last connection may have answered once.
    assert len(load.times) in {2 * len(accepted), 2 * len(accepted) - 1}
    assert len(accepted) > 1


def test_connection_that_is_closed_without_a_word_ends_the_load() -> None:
    kept = LAST.replace(b"connection: close\r\n", b"")
    with serving(kept) as (port, _), pytest.raises(RuntimeError, match="Not a success: ''"):
        Generator().run(port, [REQUEST], 1, 0.1)
