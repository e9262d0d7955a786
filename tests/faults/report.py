"""Compares what the clients wrote down with what the database holds."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.clients import Intent

ROWS = {
    "payments": "SELECT id, (amount * 100)::bigint::text FROM payments_payment WHERE id > %s",
    "orders": "SELECT id, item FROM orders_order WHERE id > %s",
    "comments": "SELECT id, text FROM posts_comment WHERE id > %s",
}
RECORDS = "SELECT key, status, location, body FROM config_idempotencyrecord WHERE key ~ '^[0-9]+$'"
# What a client may be told while things die: done, still running, another request, database away.
EXPECTED = {201, 409, 422, 503, None}
Answer = tuple[int, str, str]


@dataclass
class Report:
    requests: int = 0
    created: int = 0
    lost: list[Any] = field(default_factory=list)
    duplicate: list[Any] = field(default_factory=list)
    phantom: list[Any] = field(default_factory=list)
    changed: list[Any] = field(default_factory=list)
    stuck: list[Any] = field(default_factory=list)
    unexpected: list[Any] = field(default_factory=list)
    statuses: Counter[int | None] = field(default_factory=Counter)

    @property
    def faults(self) -> dict[str, list[Any]]:
        names = ("lost", "duplicate", "phantom", "changed", "stuck", "unexpected")
        return {name: getattr(self, name) for name in names}


def last_ids(url: str) -> dict[str, int]:
    """Where the rows end that were there before."""
    with psycopg.connect(url) as connection:
        return {
            kind: max((row[0] for row in connection.execute(rows, [0]).fetchall()), default=0)
            for kind, rows in ROWS.items()
        }


def compare(ledger: Path, url: str, before: dict[str, int]) -> Report:
    report = Report()
    intended, told = _read(ledger, report)
    with psycopg.connect(url) as connection:
        rows = {kind: connection.execute(text, [before[kind]]).fetchall() for kind, text in ROWS.items()}
        records = {int(key): tuple(rest) for key, *rest in connection.execute(RECORDS).fetchall()}
    ids: dict[int, set[int]] = {number: set() for number in intended | records.keys()}
    for kind, of_kind in rows.items():
        for id_, text in of_kind:
            if text.isdigit() and int(text) in ids and Intent(int(text)).kind == kind:
                ids[int(text)].add(id_)
    known = {(Intent(number).kind, id_) for number, found in ids.items() for id_ in found if number in records}
    report.created = sum(map(len, rows.values()))
    # Effects that nobody asked for, or of which no record was kept.
    report.phantom = [(kind, id_) for kind in rows for id_, _ in rows[kind] if (kind, id_) not in known]
    report.duplicate = [number for number, found in ids.items() if len(found) > 1]
    report.stuck = [number for number in intended if number not in told]
    # Answers and records of what is not there.
    report.lost = [number for number in told.keys() | records.keys() if not ids[number]]
    report.changed = [
        (number, answers, records.get(number), ids[number])
        for number, answers in told.items()
        if answers != {records.get(number)} or {_id_of(answer) for answer in answers} != ids[number]
    ]
    return report


def _read(ledger: Path, report: Report) -> tuple[set[int], dict[int, set[Answer]]]:
    """What the clients intended, and what they were told of it: status, Location and body of each success."""
    intended: set[int] = set()
    told: dict[int, set[Answer]] = defaultdict(set)
    for line in read_lines(ledger):
        if "intent" in line:
            report.requests += 1
            intended.add(line["intent"])
            continue
        status = line["status"]
        report.statuses[status] += 1
        if status not in EXPECTED or (line["asks"], status) in {("same", 422), ("other", 201)}:
            report.unexpected.append(line)
        elif status == 201:
            told[line["outcome"]].add((status, line["location"], line["content"]))
    return intended, told


def _id_of(answer: Answer) -> int | None:
    """The id of what an answer says was created; None when its Location says another."""
    _, location, content = answer
    id_ = json.loads(content)["data"]["id"]
    return id_ if location.endswith(f"/{id_}") else None


def read_lines(ledger: Path) -> Iterable[dict[str, Any]]:
    for file in sorted(ledger.iterdir()):
        with file.open() as lines:
            yield from map(json.loads, lines)


def longest_gaps(answered: list[float], kills: list[tuple[float, str]]) -> dict[str, float]:
    """The longest time without an effect being told, by the gravest thing that was killed in it."""
    gravity = ["nothing", "worker", "database", "service"]
    longest = dict.fromkeys(gravity, 0.0)
    times = sorted(answered)
    for start, end in itertools.pairwise(times):
        # What was under way when something was killed may still be answered.
        near = [which for at, which in kills if start - 0.2 < at < end]
        kind = max(["nothing", *near], key=gravity.index)
        longest[kind] = max(longest[kind], end - start)
    return longest
