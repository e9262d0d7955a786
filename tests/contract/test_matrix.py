"""Every credential at every endpoint, in every role, answered as the table of tests/contract/matrix.py says."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from django.urls import get_resolver

from config.api.principal import SCOPES
from config.api.schema.generator import Generator
from tests.accounts.credentials import BY_PASSWORD, reader, robot, with_client_credentials, with_grant
from tests.accounts.oauth.actors import Person
from tests.conftest import Answer, Caller, with_key, with_password
from tests.contract.matrix import OPEN, PUBLIC, WHOSE, Cell, Line, by_turns, every_second, lines, lines_outside
from tests.contract.routes import ANY_PATH, PREFIXES, addresses, routes
from tests.contract.world import ROLES, SAFE, World, rolled_back, state
from users.models import User

pytestmark = pytest.mark.django_db

LINES = lines()
# By method, so that the lines of each method take both turns.
TURNS = sorted(LINES, key=attrgetter("method"))
ROUTES = {route.template: route for route in routes()}
SCOPED = [line for line in LINES if line.scope]
PROTECTED = [line for line in LINES if line.needs not in {OPEN, PUBLIC}]
# What an operation needs beside its scope.
BESIDE = {"webhooks:write": {"events:read", "orders:read"}}
every_line = pytest.mark.parametrize("line", LINES, ids=str)
every_protected_line = pytest.mark.parametrize("line", PROTECTED, ids=str)
Limited = dict[tuple[str, bool], dict[str, Caller]]


@pytest.fixture(scope="module")
def limited(world: World) -> dict[str, Limited]:
    """By role, credentials with one scope alone (True), or with every other one (False)."""
    made = {role: limit(user) for role, user in world.people.items()}
    world.state = state()
    return made


def limit(user: User) -> Limited:
    application, machine, person = reader(), robot(user), Person(user)
    sets = {(scope, True): {scope, *BESIDE.get(scope, ())} for scope in SCOPES}
    sets |= {(scope, False): {*SCOPES} - {scope} for scope in SCOPES}
    return {
        which: {
            "API key": with_key(user, scopes),
            "OAuth code": with_grant(person, application, scopes),
            "OAuth client credentials": with_client_credentials(machine, scopes),
        }
        for which, scopes in sets.items()
    }


def fault(cell: Cell, answer: Answer, row: int | None = None) -> str | None:
    """What is wrong with an answer; None when it is the expected one."""
    if answer.status != cell.status or (cell.code and answer.code != cell.code):
        return f"{cell.status} {cell.code or ''} expected, and not {answer}"
    if answer.status == 401 and not answer.headers.get("WWW-Authenticate"):
        return "401 without a challenge"
    if cell.listed is not None and (row in {item["id"] for item in answer.data}) != cell.listed:
        return f"row {row} should {'' if cell.listed else 'not '}be in the list"
    return None


def faults_of(line: Line, world: World, callers: Any) -> dict[Any, str]:
    """What is wrong in a line of the table, by role, row and credential.

    Args:
        callers: the credentials of a role, by name.
    """
    route, found = ROUTES[line.template], {}
    for place, name in askers(line, callers):
        target = world.target(*place)
        row = world.listed_row(route, target) if route.is_list else None
        cell = line.cells(by_password=name in BY_PASSWORD)[place]
        problem = fault(cell, world.ask(line, route, callers(place[0])[name], target), row)
        if problem:
            found[(*place, name)] = problem
    return found


def askers(line: Line, callers: Any) -> list[tuple[tuple[str, str], str]]:
    """Who asks for a line: role and row, and the credential.

    Each role asks with each of its credentials, on its own row or on the other one by turns: what a column says is
    asked with and without the password, and the next line has the two rows exchanged.
    """
    first = TURNS.index(line)
    return [
        ((role, whose), name)
        for role_turn, role in enumerate(ROLES, first)
        for turn, name in enumerate(callers(role), role_turn)
        for whose in by_turns(turn, WHOSE)
    ]


def test_the_table_has_every_endpoint_and_no_other() -> None:
    there = {(str(route), method) for route in ROUTES.values() for method in route.methods - {"OPTIONS"}}
    assert {(line.template, line.method) for line in LINES} == there


def test_the_table_has_every_address_and_no_other() -> None:
    """Also what stands at the root, or below one prefix alone."""
    only_below_api = {line.template for line in LINES if line.needs == PUBLIC} | {"protected"}
    resources = {route.path(prefix).strip("/") for prefix in PREFIXES for route in ROUTES.values()}
    entries = {prefix.strip("/") for prefix in PREFIXES}
    outside = {template for template, *_ in lines_outside()}
    declared = resources - only_below_api | entries | outside | {ANY_PATH}
    there = {address.replace("/v<version:version>", "/v1") for address in addresses(get_resolver(), within=("admin/",))}
    assert there == declared


@every_line
def test_line_holds_for_credentials_of_all_scopes(world: World, line: Line) -> None:
    assert faults_of(line, world, world.credentials.__getitem__) == {}


@every_protected_line
def test_line_holds_for_credentials_of_its_scope_alone(world: World, limited: dict[str, Limited], line: Line) -> None:
    """Where none is needed, any will do."""
    scope = line.scope or "users:read"
    assert faults_of(line, world, lambda role: limited[role][scope, True]) == {}


@pytest.mark.parametrize("line", SCOPED, ids=str)
def test_every_scope_but_the_lines_is_not_enough(world: World, limited: dict[str, Limited], line: Line) -> None:
    """Whatever the role and the row: without the scope one learns nothing of either."""
    route = ROUTES[line.template]
    methods = ["GET", "HEAD"] if line.method == "GET" else [line.method]
    for place, name in askers(line, lambda role: limited[role][line.scope, False]):
        caller = limited[place[0]][line.scope, False][name]
        for method in methods:
            answer = world.ask(line, route, caller, world.target(*place), method)
            challenge = f'Bearer error="insufficient_scope", scope="{line.scope}"'
            assert (answer.status, answer.headers.get("WWW-Authenticate")) == (403, challenge), (place, name)
            if method != "HEAD":
                assert answer.code == "INSUFFICIENT_SCOPE"
                assert line.scope in answer.error["message"]


@every_line
def test_line_holds_for_nobody(world: World, line: Line) -> None:
    answer = world.ask(line, ROUTES[line.template], Caller(), world.other)
    assert fault(Cell.read(line.nobody, by_password=False), answer) is None


def bad_credentials(world: World) -> dict[str, tuple[Caller, str]]:
    """One of each kind, with the code of its refusal."""
    good, user = world.credentials["user"], world.people["user"]
    jwt = good["JWT"].headers["Authorization"]
    token = good["OAuth code"].headers["Authorization"]
    return {
        "API key": (Caller(headers={"X-API-Key": f"urs_{'x' * 43}"}), "INVALID_CREDENTIALS"),
        "API key in the query": (Caller(query=f"api_key=urs_{'x' * 43}"), "INVALID_CREDENTIALS"),
        "JWT": (Caller(headers={"Authorization": f"{jwt[:-9]}AAAAAAAA{jwt[-1]}"}), "INVALID_TOKEN"),
        "OAuth token": (Caller(headers={"Authorization": f"{token}x"}), "INVALID_TOKEN"),
        "Basic": (with_password(user, "not the password at all"), "INVALID_CREDENTIALS"),
        "unknown scheme": (Caller(headers={"Authorization": "Digest x"}), "INVALID_TOKEN"),
        "session": (Caller(headers={"Cookie": f"sessionid={'x' * 32}"}), "UNAUTHENTICATED"),
    }


@every_line
def test_bad_credential_is_refused_with_a_challenge(world: World, line: Line) -> None:
    """A public endpoint looks at none; where none is needed, a session that is over is no credential."""
    route = ROUTES[line.template]
    for name, (caller, code) in bad_credentials(world).items():
        ignored = line.needs == PUBLIC or (line.needs == OPEN and name == "session")
        expected = Cell.read(line.nobody, by_password=False) if ignored else Cell(401, code)
        assert fault(expected, world.ask(line, route, caller, world.other)) is None, name


@every_protected_line
def test_head_and_options_need_a_credential_too(world: World, line: Line) -> None:
    for method in ("HEAD", "OPTIONS") if line.method == "GET" else ("OPTIONS",):
        for caller in (Caller(), bad_credentials(world)["API key"][0]):
            answer = world.ask(line, ROUTES[line.template], caller, world.other, method)
            assert (answer.status, bool(answer.headers["WWW-Authenticate"])) == (401, True)


def two_at_once(world: World) -> dict[str, Caller]:
    good = world.credentials["user"]
    key, jwt, oauth, basic = (good[name].headers for name in ("API key", "JWT", "OAuth code", "Basic"))
    query = good["API key in the query"].query
    (bad, _) = bad_credentials(world)["JWT"]
    authorization = [headers["Authorization"] for headers in (jwt, oauth, basic)]
    return {
        "key twice": Caller(headers={"X-API-Key": ", ".join([key["X-API-Key"]] * 2)}),
        "key twice in the query": Caller(query=f"{query}&{query}"),
        "key in header and query": Caller(headers=key, query=f"api_key={key['X-API-Key']}"),
        **{f"key and {scheme}": Caller(headers={**key, "Authorization": scheme}) for scheme in authorization},
        "query and Basic": Caller(headers=basic, query=query),
        "JWT and OAuth": Caller(headers={"Authorization": ", ".join(authorization[:2])}),
        "JWT and Basic": Caller(headers={"Authorization": ", ".join(authorization[::2])}),
        "a good one and a bad one": Caller(headers={**key, **(bad.headers or {})}),
        "two bad ones": Caller(headers=bad.headers, query="api_key=none"),
    }


@every_line
def test_two_credentials_are_a_conflict(world: World, line: Line) -> None:
    expected = Cell.read(line.nobody, by_password=False)
    if line.needs != PUBLIC:
        expected = Cell(400, "CREDENTIAL_CONFLICT")
    # They are refused before the endpoint matters.
    for name, caller in every_second(TURNS.index(line), [*two_at_once(world).items()]):
        assert fault(expected, world.ask(line, ROUTES[line.template], caller, world.other)) is None, name


@every_line
def test_session_needs_the_csrf_token_to_write_and_only_then(world: World, line: Line) -> None:
    route = ROUTES[line.template]
    for place, _ in askers(line, lambda role: ["session"]):
        headers = world.credentials[place[0]]["session"].headers or {}
        cookies = Caller(headers={"Cookie": headers["Cookie"]})
        expected = line.cells(by_password=True)[place]
        if line.needs != PUBLIC and line.method not in SAFE:
            expected = Cell(403, "FORBIDDEN")
        target = world.target(*place)
        row = world.listed_row(route, target) if route.is_list else None
        assert fault(expected, world.ask(line, route, cookies, target), row) is None, place


@pytest.fixture(scope="module")
def schema() -> Any:
    return Generator().get_schema(public=True)


@every_line
def test_schema_says_what_the_line_says(schema: Any, line: Line) -> None:
    path = f"/api/v1/{line.template.replace('<', '{').replace('>', '}')}"
    said = schema["paths"][path][line.method.lower()].get("security", [])
    assert {scheme for option in said for scheme in option} <= set(schema["components"]["securitySchemes"])
    if line.needs == PUBLIC:
        assert said == []
    elif line.only_by_password:
        assert said == [{"bearer": []}, {"basic": []}]
    else:
        scopes = [line.scope] if line.scope else []
        every = [{name: scopes} for name in ("apiKey", "apiKeyInQuery", "bearer", "basic", "oauth2")]
        assert said == ([{}] if line.needs == OPEN else []) + every


@pytest.mark.parametrize(("template", "method", "nobody", "session"), lines_outside())
def test_outside_of_the_api_only_a_browsers_session_counts(
    world: World, template: str, method: str, nobody: int, session: int
) -> None:
    def status(caller: Caller) -> int:
        with rolled_back():
            answer: int = caller.fetch(method, f"/{template.replace('<slug:page>', 'errors')}").status_code
            return answer

    good = world.credentials["admin"]
    explicit = [good[name] for name in good if name != "session"]
    bad = [caller for caller, _ in bad_credentials(world).values()]
    assert {status(caller) for caller in (Caller(), *explicit, *bad)} == {nobody}
    assert status(good["session"]) == session
    if nobody == 403:
        assert status(Caller(headers={"Cookie": good["session"].headers["Cookie"]})) == 403
