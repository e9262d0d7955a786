"""A server of which a test says what it answers."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count


@contextmanager
def serving(answer: Callable[[int], bytes]) -> Iterator[int]:
    """A server that answers one request after the other on each connection until one is empty. Yields its port."""
    numbers = count()

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(1000) and (told := answer(next(numbers))):
                connection.sendall(told)

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
