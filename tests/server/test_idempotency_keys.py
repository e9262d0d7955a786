"""The header as clients send it, through Granian: twice, cut in two, or not in ASCII."""

import http.client

import pytest

from tests.service import Service, get_key


@pytest.mark.parametrize(
    ("values", "status"),
    [
        (("this-once",), 201),
        (("a", "b"), 400),
        (("a", "a"), 400),
        (('"a', 'b"'), 400),
        (("", ""), 400),
        (("é".encode(),), 400),
    ],
    ids=repr,
)
def test_only_one_key_is_taken(
    service: Service, first_start: list[str], values: tuple[str | bytes, ...], status: int
) -> None:
    key = get_key(first_start)
    body = b'{"amount": 1}'
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
    connection.putrequest("POST", "/payments")
    for name, value in (("X-API-Key", key), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
        connection.putheader(name, value)
    for value in values:
        connection.putheader("Idempotency-Key", value)
    connection.endheaders(body)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.status == status
    assert (b"IDEMPOTENCY_KEY_INVALID" in content) is (status == 400)
