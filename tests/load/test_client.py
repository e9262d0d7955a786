import socket

import pytest

from tests.load.client import refuse_own


def test_connection_to_itself_is_refused() -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.connect(own.getsockname())
        own.sendall(b"GET / HTTP/1.1")
        assert own.recv(100) == b"GET / HTTP/1.1"
        with pytest.raises(ConnectionRefusedError):
            refuse_own(own)


def test_connection_to_another_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as other:
        refuse_own(other)
