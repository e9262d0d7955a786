"""The bodies of requests as clients send them, through Granian."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from tests.service import Service, get_key

MEBIBYTE = 1024 * 1024
PATH = "/api/v1/users"


class Client(http.client.HTTPConnection):
    """One connection, kept open, and the key that the first start printed."""

    def __init__(self, port: int, key: str) -> None:
        super().__init__("127.0.0.1", port, timeout=10)
        self.headers = {"Content-Type": "application/json", "X-API-Key": key}

    def post(self, body: bytes, chunked: bool) -> tuple[int, bytes]:
        content = (body[start : start + 65536] for start in range(0, len(body), 65536)) if chunked else body
        headers = self.headers | ({"Transfer-Encoding": "chunked"} if chunked else {})
        self.request("POST", PATH, content, headers, encode_chunked=chunked)
        response = self.getresponse()
        return response.status, response.read()


@pytest.fixture
def client(service: Service, first_start: list[str]) -> Iterator[Client]:
    opened = Client(service.port, get_key(first_start))
    yield opened
    opened.close()


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [2 * MEBIBYTE, 20 * MEBIBYTE])
def test_refusal_of_a_body_reaches_a_client_that_sends_all_of_it_first(
    client: Client, size: int, chunked: bool
) -> None:
    # Several on one connection: what is left unread would be taken for the next request.
    assert [client.post(b" " * size, chunked)[0] for _ in range(3)] == [413] * 3


@pytest.mark.parametrize("chunked", [False, True])
def test_body_is_read_however_it_is_sent(client: Client, chunked: bool) -> None:
    status, body = client.post(b'{"name": "Ada", "email": "no address"}', chunked)
    assert status == 400
    assert b'"field":"email"' in body.replace(b" ", b"")


def test_clients_that_never_finish_their_body_keep_nobody_waiting(service: Service) -> None:
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(16)]
    try:
        for client in slow:
            client.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert service.status() == 200
    finally:
        for client in slow:
            client.close()
