"""The line in the log that each request has."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.http.request_state import STATE, RequestState
from config.server import logs
from config.server.answers import refuse_at_once
from config.server.requests import build_overload
from tests.api.wire import send
from tests.conftest import PASSWORD, Caller
from tests.server.environ import build_environ

Lines = Callable[[], list[dict[str, Any]]]
FIELDS = [
    *("time", "level", "logger", "request_id", "traceparent", "method", "route", "status", "principal", "kind"),
    *("version", "bytes", "duration_ms", "database_ms", "statements", "replayed", "lane", "address"),
]
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """The lines of requests since the last look."""
    written: list[bytes] = []
    add = logs.log.add

    def keep(line: bytes) -> None:
        written.append(line)
        add(line)

    monkeypatch.setattr(logs.log, "add", keep)

    def take() -> list[dict[str, Any]]:
        taken = [json.loads(line) for line in written]
        written.clear()
        return [line for line in taken if line["logger"] == "request"]

    return take


def test_line_says_who_asked_for_what_and_what_it_cost(user: Caller, lines: Lines) -> None:
    answer = user.get(f"/api/v1/users/{user.user.pk}?fields=id,email", x_request_id="mine", traceparent=TRACE)
    (line,) = lines()
    assert list(line) == FIELDS
    assert datetime.now(UTC) - datetime.fromisoformat(line.pop("time")) < timedelta(seconds=10)
    assert 0 < line.pop("database_ms") < line.pop("duration_ms") < 10_000
    assert line.pop("statements") in range(1, 5)
    assert line == {
        "level": "INFO",
        "logger": "request",
        "request_id": "mine",
        "traceparent": TRACE,
        "method": "GET",
        "route": "/api/v<version>/users/<id>",
        "status": 200,
        "principal": user.user.pk,
        "kind": "api_key",
        "version": "1",
        "bytes": int(answer.headers["Content-Length"]),
        "replayed": False,
        "lane": None,
        "address": "127.0.0.1",
    }


def test_address_is_left_out_of_the_log_where_the_operator_wants_it(user: Caller, lines: Lines, settings: Any) -> None:
    settings.LOG_CLIENT_ADDRESS = False
    user.get("/users")
    assert list(lines()[0]) == FIELDS[:-1]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (TRACE, TRACE),
        (f"cc{TRACE[2:]}-what-a-later-version-adds", f"cc{TRACE[2:]}"),
        ("", None),
        (f"ff{TRACE[2:]}", None),
        (TRACE.upper(), None),
        (f"{TRACE}0", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", None),
        (f"{TRACE}\n", None),
    ],
)
def test_traceparent_is_kept_where_it_is_one(lines: Lines, sent: str, kept: str | None) -> None:
    send("GET", "/health/live", HTTP_TRACEPARENT=sent)
    assert [line["traceparent"] for line in lines()] == [kept]


@pytest.mark.django_db(transaction=True)
def test_replayed_answer_is_told(user: Caller, lines: Lines) -> None:
    for _ in range(2):
        assert user.post("/payments", {"amount": 1}, idempotency_key="k").status == 201
    assert [line["replayed"] for line in lines()] == [False, True]


@pytest.mark.parametrize("kind", ["api_key", "api_key_in_query", "jwt", "basic", "session", "wrong", "none"])
@pytest.mark.django_db(transaction=True)
def test_kind_of_the_credential_is_told_and_nothing_of_it(
    make_user: Callable[..., Any], lines: Lines, kind: str
) -> None:
    from accounts import logins
    from tests.conftest import new_client, with_key

    person = make_user("admin", password=PASSWORD)
    client, headers, query = new_client(checks_csrf=False), {}, ""
    secret = PASSWORD
    match kind:
        case "api_key" | "api_key_in_query":
            secret = (with_key(person).headers or {})["X-API-Key"]
            headers, query = ({"X-API-Key": secret}, "") if kind == "api_key" else ({}, f"?api_key={secret}")
        case "jwt":
            secret = str(logins.log_in(person).access)
            headers = {"Authorization": f"Bearer {secret}"}
        case "basic":
            secret = b64encode(f"{person.email}:{PASSWORD}".encode()).decode()
            headers = {"Authorization": f"Basic {secret}"}
        case "session":
            client.post("/session/login", {"username": person.email, "password": PASSWORD})
            secret = client.cookies["sessionid"].value
        case "wrong":
            secret = "urs_a-key-that-there-is-not"
            headers = {"X-API-Key": secret}
    lines()
    response = client.get(f"/api/v1/users{query}", headers=headers)
    is_known = kind not in {"wrong", "none"}
    assert response.status_code == (200 if is_known else 401)
    (line,) = lines()
    expected = (person.pk, kind.removesuffix("_in_query")) if is_known else (None, None)
    assert (line["principal"], line["kind"]) == expected
    assert secret not in json.dumps(line)
    assert person.email not in json.dumps(line)


def test_addresses_and_methods_of_the_client_are_not_repeated(lines: Lines, db: None) -> None:
    send("BREW", "/a-secret-in-the-path?and=in-the-query")
    (line,) = lines()
    assert (line["method"], line["route"], line["status"], line["level"]) == ("OTHER", "none", 404, "INFO")
    assert "secret" not in json.dumps(line)
    assert "in-the-query" not in json.dumps(line)


def test_fault_has_a_line_of_its_own(lines: Lines, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from config.server import answers

    monkeypatch.setattr(answers, "_run_fast_path", lambda environ: 1 / 0)
    monkeypatch.setattr(answers, "_run_django", lambda django, environ: 1 / 0)
    given = answers.answer(None, build_environ("/users", "no-token"))
    (line,) = lines()
    assert (line["status"], line["level"], line["method"]) == (500, "ERROR", "GET")
    assert line["request_id"] == dict(given.headers)["Request-Id"]


def test_refusal_has_a_line_also_where_it_is_repeated(lines: Lines) -> None:
    environ = build_environ("/users", "no-token")
    given = [
        refuse_at_once({**environ, STATE: RequestState(lane="fast")}, build_overload("Too many.")) for _ in range(2)
    ]
    told = lines()
    assert [line["request_id"] for line in told] == [dict(answer.headers)["Request-Id"] for answer in given]
    for line in told:
        assert (line["status"], line["version"], line["bytes"]) == (503, "1", len(given[0].body))
        assert (line["lane"], line["route"], line["principal"]) == ("fast", "none", None)


def test_values_that_json_does_not_have_do_not_stop_a_line() -> None:
    line = {"text": "\ud800", "number": 2**70, "object": {1, 2}}
    assert json.loads(logs.render(line)) == {"text": "\ud800", "number": 2**70, "object": "{1, 2}"}
