"""What an attempt sends, and what it makes of the answer."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from config.events.webhooks import sending
from config.events.webhooks.sending import Sender
from tests.events.webhooks.receiver import Receiver
from tests.events.webhooks.test_addresses import resolve_to, send
from tests.system.proxies import make_certificate

BODY = json.dumps({"id": 7, "type": "user.created", "text": "ä"}).encode()


@pytest.fixture
def local(settings: Any) -> None:
    settings.LOCAL = True


@pytest.mark.usefixtures("local")
def test_redirects_are_not_followed_and_cookies_not_kept():
    with Receiver(lambda number: (302, {"Location": "/elsewhere", "Set-Cookie": "a=b"}, b"")).running() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/hook?x=1"
        outcomes = send(url, url)
    assert [(outcome.status, outcome.is_success) for outcome in outcomes] == [(302, False)] * 2
    assert [("cookie" in headers, body) for headers, body in receiver.messages] == [(False, b"{}")] * 2


@pytest.mark.usefixtures("local")
def test_answer_is_kept_as_its_first_kilobyte_of_text():
    answers = [b"a" * 5000, b"\0\xff" + "ä".encode(), b"x" * 1023 + "ä".encode()]
    with Receiver(lambda number: (200, {}, answers[number - 1])).running() as receiver:
        outcomes = send(*[f"http://127.0.0.1:{receiver.port}/"] * 3)
    assert [outcome.body for outcome in outcomes] == ["a" * 1024, "\ufffd\ufffdä", "x" * 1023 + "\ufffd"]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", timedelta(seconds=7)),
        ("999999999999", timedelta(days=1)),
        ("-1", None),
        ("soon", None),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999999999", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        (format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True), timedelta(0)),
        (format_datetime(datetime(2090, 1, 1, tzinfo=UTC), usegmt=True), timedelta(days=1)),
    ],
)
def test_retry_after_is_read(header, expected):
    with Receiver(lambda number: (503, {"Retry-After": header}, b"")).running() as receiver:
        (outcome,) = send(f"http://127.0.0.1:{receiver.port}/")
    assert (outcome.status, outcome.retry_after, outcome.label) == (503, expected, "5xx")


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"])
def test_silent_and_slow_receivers_are_given_up_in_time(monkeypatch, answer):
    monkeypatch.setattr(sending, "SECONDS_OF_AN_ATTEMPT", 0.3)

    async def attempt() -> Any:
        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            await reader.read()
            writer.close()
            await writer.wait_closed()
            ended.set()

        ended = asyncio.Event()
        async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
            sender = Sender()
            outcome = await sender.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, BODY)
            sender.close()
            await ended.wait()
            return outcome

    outcome = asyncio.run(attempt())
    assert (outcome.status, outcome.error, outcome.label) == (None, "No answer within 0 seconds.", "no_answer")
    assert 300 <= outcome.duration_ms < 1000


def test_tls_is_for_the_name_and_goes_to_the_checked_address(monkeypatch, settings, tmp_path):
    settings.LOCAL = False
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    resolve_to(monkeypatch, ["127.0.0.1"])
    certificate = make_certificate(tmp_path, "hook.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.sni_callback = lambda _, name, __: names.append(name)
    with Receiver().running(context) as receiver:
        right, wrong = send(f"https://hook.example.com:{receiver.port}/", f"https://other.example.com:{receiver.port}/")
    assert (right.status, right.error) == (204, "")
    assert (wrong.status, "certificate is not valid for 'other.example.com'" in wrong.error) == (None, True)
    assert names == ["hook.example.com", "other.example.com"]
    ((headers, _),) = receiver.messages
    assert headers["host"] == f"hook.example.com:{receiver.port}"
