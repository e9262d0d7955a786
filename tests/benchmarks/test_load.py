"""The closed loop of the benchmarks."""

import threading

import pytest

from benchmarks.load import Generator
from tests.load.server import serving

PERSISTENT = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CLOSING = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
REQUEST = b"GET / HTTP/1.1\r\n\r\n"


def test_load_connects_anew_where_an_answer_says_that_the_connection_is_closed() -> None:
    # Each connection has a thread.
    connections: list[threading.Thread] = []

    def answer(number: int) -> bytes:
        connections.append(threading.current_thread())
        return CLOSING if number % 2 else PERSISTENT

    with serving(answer) as port:
        load = Generator().run(port, [REQUEST], 1, 0.1)
    assert len(load.times) == len(connections) > 2
    assert connections[::2][: len(connections) // 2] == connections[1::2]
    assert len(set(connections[::2])) == len(connections[::2])


def test_connection_that_is_closed_without_a_word_ends_the_load() -> None:
    with (
        serving(lambda number: b"" if number else PERSISTENT) as port,
        pytest.raises(RuntimeError, match="Not a success: ''"),
    ):
        Generator().run(port, [REQUEST], 1, 0.1)
