"""What is asked of every system, and that all of them answer the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from benchmarks.load import KEY
from benchmarks.systems import System, headers

BODIES: dict[str, tuple[str, Any]] = {
    "post_order": ("/orders", {"item": "Garden trowel", "qty": 2}),
    "post_payment": ("/payments", {"amount": 12.5}),
}
CASES = (
    *("get_user", "list_first", "list_mid", "list_last", "list_cursor", "list_filter", "user_orders"),
    *BODIES,
)
DIFFERENT_IDS = 1024


def requests_of(case: str, system: System, users: int) -> list[bytes]:
    """The requests of a case as they are sent: its paths, and the callers, in turn."""
    tokens = system.tokens()
    paths = paths_of(case, system, users, tokens[0])
    body = BODIES[case][1] if case in BODIES else None
    key = KEY.decode() if case == "post_payment" else ""
    return [
        _wire(system, paths[number % len(paths)], tokens[number % len(tokens)], body, key)
        for number in range(max(len(paths), len(tokens)))
    ]


def paths_of(case: str, system: System, users: int, token: str) -> list[str]:
    # A prime apart, and so in no order that a cache would know.
    scattered = [number * 7919 % (users - 1) + 1 for number in range(1, DIFFERENT_IDS + 1)]
    match case:
        case "get_user":
            return [f"/users/{identifier}" for identifier in scattered]
        case "user_orders":
            return [f"/users/{identifier}/orders" for identifier in scattered]
        case "list_cursor":
            return [_second_page(system, token)]
        case "post_order" | "post_payment":
            return [BODIES[case][0]]
    query = {
        "list_first": "page=1&limit=20",
        "list_mid": f"page={users // 40}&limit=20",
        "list_last": f"page={-(-users // 20)}&limit=20",
        "list_filter": "status=inactive&role=support&page=1&limit=20",
        "total": "page=1&limit=1&fields=id",
    }
    return [f"/users?{query[case]}"]


def _second_page(system: System, token: str) -> str:
    if system.name == "stock":
        following = urlsplit(system.ask("GET", "/walk?limit=20", token)[1]["next"])
        return f"{following.path}?{following.query}"
    mark = system.ask("GET", "/users?cursor=&limit=20", token)[1]["meta"]["nextCursor"]
    return f"/users?cursor={mark}&limit=20"


def _wire(system: System, path: str, token: str, body: Any, key: str) -> bytes:
    text = json.dumps(body) if body is not None else ""
    fields = {"Host": f"127.0.0.1:{system.port}"} | headers(token, body, key)
    fields |= {"Content-Length": str(len(text))} if text else {}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{'POST' if text else 'GET'} {system.prefix}{path} HTTP/1.1\r\n{head}\r\n{text}".encode()


# --- Whether they do the same work -----------------------------------------------------------------------------------


def check(systems: Sequence[System], cases: Sequence[str], users: int) -> None:
    """Raises SystemExit where a system answers otherwise than the first, or lets a forged token in."""
    seen = [_answers(system, cases, users) for system in systems]
    for system, answers in zip(systems, seen, strict=True):
        for name, answer in answers.items():
            if answer != seen[0][name]:
                raise SystemExit(f"{name}: {systems[0].name} answers\n{seen[0][name]}\nand {system.name}\n{answer}")


def _answers(system: System, cases: Sequence[str], users: int) -> dict[str, Any]:
    token = system.tokens()[0]
    found: dict[str, Any] = {
        "a token with another signature": system.ask("GET", "/users/1", token[:-9] + token[:9])[0],
    }
    if found["a token with another signature"] != 401:
        raise SystemExit(f"{system.name} lets a token with another signature in")
    for case in cases:
        path = paths_of(case, system, users, token)[0]
        if case not in BODIES:
            status, body = system.ask("GET", path, token)
            found[case] = (status, *_read(body))
            continue
        key = f"check-{system.port}" if case == "post_payment" else ""
        first, again = (system.ask("POST", path, token, BODIES[case][1], key) for _ in range(2))
        if key and first != again:
            raise SystemExit(f"{system.name} answers {again} to a payment that was answered {first}")
        (row,), _ = _read(first[1])
        found[case] = (first[0], {name: row[name] for name in row.keys() - {"id", "created_at"}}, sorted(row))
    return found


def _read(body: Any) -> tuple[list[dict[str, Any]], int | None]:
    """The rows of an answer and, of a page, the total; whatever the envelope."""
    content = body.get("results", body.get("data", body))
    rows = content if isinstance(content, list) else [content]
    return [_values(row) for row in rows], body.get("meta", {}).get("total", body.get("count"))


def _values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in row.items() if name != "_links"}


def _value(name: str, value: Any) -> Any:
    match name:
        case "created_at" | "updated_at":
            return datetime.fromisoformat(value)
        case "amount":
            return Decimal(str(value))
    return value
