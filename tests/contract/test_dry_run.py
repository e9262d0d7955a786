"""A dry run answers as the request would be answered, and leaves nothing, at every endpoint that writes a resource."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from django.db import connection

from tests.conftest import Answer, Caller
from tests.contract.matrix import PLACES, Line, by_turns, lines
from tests.contract.routes import resource_routes
from tests.contract.world import SAFE, World, rolled_back
from tests.system.differential.comparison import fetch_rows
from users.models import User

pytestmark = pytest.mark.django_db

ROUTES = {route.template: route for route in resource_routes()}
WRITES = [line for line in lines() if line.template in ROUTES and line.method not in SAFE]
# By method, so that the lines of each method take both turns.
TURNS = sorted(WRITES, key=attrgetter("method"))
every_write = pytest.mark.parametrize("line", WRITES, ids=str)
# What is made up for each answer.
MADE_UP = {"id", "created_at", "updated_at", "_links", "key", "secret", "prefix", "expires_at"}
# What a request counts of itself, tried or not.
OF_REQUESTS = ("config_counter ", "config_versionuse ")


def everything() -> frozenset[str]:
    """All rows of all tables, and the totals; not when a key was last used."""
    rows = {row for row in fetch_rows() if not row.startswith(OF_REQUESTS)}
    with connection.cursor() as cursor:
        cursor.execute("SELECT relation, bits, block, part::text, sum(rows) FROM config_rowcount GROUP BY 1, 2, 3, 4")
        totals = {str(row) for row in cursor.fetchall()}
    return frozenset(rows | totals)


def ask(world: World, line: Line, caller: Caller, target: User, address: str = "/api/v2{}") -> Answer:
    """Sends the request of a line, in the form of an address with a place for the path."""
    content = world.content_of(line, target) if line.method != "DELETE" else {}
    headers = {"Idempotency-Key": "k"} if line.template == "payments" else {}
    path = world.path(ROUTES[line.template], target, "")
    return caller(line.method, address.format(path), **content, **headers)


def told(answer: Answer) -> Any:
    """What an answer says, but for what is made up anew each time."""
    if answer.status >= 400:
        return answer.status, answer.error
    return answer.body and known(answer.data)


def known(data: Any) -> Any:
    if isinstance(data, list):
        return [known(each) for each in data]
    if not isinstance(data, dict):
        return data
    return {name: known(value) for name, value in data.items() if name not in MADE_UP}


@every_write
def test_dry_run_answers_as_the_request_and_changes_nothing(world: World, line: Line) -> None:
    first = TURNS.index(line)
    # Whatever the kind of the credential, but for what only a password may.
    kinds = ("JWT", "API key")
    asked = [
        (place, name)
        for turn, place in enumerate(PLACES)
        # A role has one for its own row, the other for the other row; the next role and the next line exchange them.
        for name in by_turns(first + turn + turn // 2, kinds)
    ]
    for role, name in {(role, name) for (role, _), name in asked}:
        # The keys are used.
        world.credentials[role][name].get("/api/v2/protected")
    before = everything()
    for place, name in asked:
        caller, target = world.credentials[place[0]][name], world.target(*place)
        with rolled_back():
            done = ask(world, line, caller, target)
        with rolled_back():
            tried = ask(world, line, caller, target, "/api/v2{}?dry_run=true")
            assert everything() == before, (place, name)
        assert told(tried) == told(done), (place, name)
        if done.status < 400:
            assert (tried.status, tried.headers["Dry-Run"]) == (200, "true")
            assert not {"ETag", "Location", "Content-Location"} & {*tried.headers}
        else:
            assert tried.status == done.status
            assert "Dry-Run" not in tried.headers


@every_write
def test_version_that_does_not_know_it_refuses_it(world: World, line: Line) -> None:
    caller, target = world.credentials["admin"]["API key"], world.target("admin", "own")
    # The key is used.
    caller.get("/api/v2/protected")
    before = everything()
    forms = ["/api{}?dry_run=true", "{}?dry_run=true"]
    forms += [f"/api/v1{{}}?dry_run={value}" for value in ("true", "false", "", "true&dry_run=false")]
    for form in forms:
        answer = ask(world, line, caller, target, form)
        if line.has_lines:
            assert (answer.status, answer.code) in {(415, "UNSUPPORTED_MEDIA_TYPE"), (400, "VALIDATION_ERROR")}
        elif answer.status != 403:
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"dry_run"})
    assert everything() == before


@every_write
def test_value_is_true_or_false(world: World, line: Line) -> None:
    caller, target = world.credentials["admin"]["JWT"], world.target("admin", "other")
    before = everything()
    for value in ("", "True", "true&dry_run=true"):
        answer = ask(world, line, caller, target, f"/api/v2{{}}?dry_run={value}")
        if answer.status != 403:
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"dry_run"})
    assert everything() == before
    with rolled_back():
        answer = ask(world, line, caller, target, "/api/v2{}?dry_run=false")
        assert "Dry-Run" not in answer.headers
        assert (everything() == before) == (answer.status >= 400)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_know_no_such_parameter(world: World, method: str) -> None:
    for path in ("/api/v2/users", f"/api/v2/users/{world.other.pk}", "/api/v1/users", "/api/v2/versions"):
        assert world.credentials["admin"]["API key"](method, f"{path}?dry_run=true").status == 400


def test_log_in_that_was_only_to_be_tried_is_refused(world: World) -> None:
    for prefix in ("/api/v1", "/api/v2", "/api"):
        answer = Caller().post(f"{prefix}/login?dry_run=true", {"email": "a@example.com", "password": "x"})
        assert (answer.status, answer.fields) == (400, {"dry_run"})


def test_options_describes_also_with_it(world: World) -> None:
    for prefix in ("/api/v1", "/api/v2"):
        assert world.credentials["admin"]["API key"]("OPTIONS", f"{prefix}/users?dry_run=true").status == 200
