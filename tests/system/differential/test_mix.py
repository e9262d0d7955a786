"""Queries, headers and bodies in all combinations, on both paths."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import Caller
from tests.contract.routes import Route, resource_routes
from tests.system.differential import strategies
from tests.system.differential.comparison import LAST_ID, ON_REFERENCE, Sent
from tests.system.differential.strategies import ACCEPT, MALFORMED, TAG, TOKENS
from tests.system.differential.world import LargeWorld

pytestmark = pytest.mark.django_db

ROUTES = {route.template: route for route in resource_routes() if route.template not in ON_REFERENCE}
READ = [route for route in ROUTES.values() if "GET" in route.methods]
LISTS = [route for route in ROUTES.values() if route.is_list]
# The members of a valid body of each address that takes one.
MEMBERS: Mapping[str, list[str]] = {
    "users": ['"name": "New"', '"email": "new@example.com"'],
    "users/<id>": ['"name": "New"', '"email": "new@example.com"'],
    "orders": ['"item": "Book"', '"qty": 3'],
    "payments": ['"amount": 5.25'],
    "users/<user_id>/posts": ['"title": "New"', '"body": "New"'],
    "posts/<id>": ['"title": "New"', '"body": "New"'],
    "posts/<post_id>/comments": ['"text": "New"'],
    "comments/<id>": ['"text": "New"'],
    "api-keys": ['"name": "New"', '"scopes": ["users:read"]'],
    "api-keys/<api_key_id>/rotations": ['"overlap_seconds": 60'],
}
# Members that may be left out.
FURTHER: Mapping[str, tuple[str, ...]] = {
    "users": ('"role"', '"status"'),
    "users/<id>": ('"role"', '"status"'),
    "orders": ('"user_id"',),
    "payments": ('"user_id"',),
    "api-keys": ('"expires_at"',),
}
callers = st.tuples(
    st.sampled_from(["user", "support", "admin"]), st.sampled_from(["JWT", "API key", "OAuth code", "Basic"])
)
prefixes = st.sampled_from(["/api/v1", "/api/v1", "/api/v2", ""])
# One database serves all examples: none leaves a trace. To shrink an example would take minutes.
compared = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def is_fast(headers: Mapping[str, str]) -> bool:
    return not headers.get("Cookie") and ACCEPT[headers.get("Accept", "")]


def complete(compare: Any, caller: Caller, request: Sent) -> Sent:
    """The request with the credential of the caller, and the entity tag of the address where a header asks for it."""
    credential, headers = caller.headers or {}, request.headers
    if any(TAG in value for value in headers.values()):
        (found,) = compare(Sent("GET", request.path, headers=credential))
        tag = found.headers.get("ETag", '"none"')
        headers = {name: value.replace(TAG, tag) for name, value in headers.items()}
    return replace(request, headers={**credential, **headers}, is_fast=is_fast(headers))


@pytest.mark.parametrize("route", READ, ids=str)
def test_reads(compare: Any, world: LargeWorld, route: Route) -> None:
    request = st.tuples(st.sampled_from(["GET"] * 4 + ["HEAD", "OPTIONS"]), strategies.queries, strategies.headers)

    @compared
    @given(callers, prefixes, st.lists(request, min_size=3, max_size=3))
    def check(who: tuple[str, str], prefix: str, requests: list[Any]) -> None:
        caller, path = world.callers[who[0]][who[1]], world.get_path(route, prefix)
        built = [Sent(method, path, headers=headers, query=query) for method, query, headers in requests]
        compare(*(complete(compare, caller, each) for each in built))

    check()


@pytest.mark.parametrize("template", MEMBERS)
def test_writes(compare: Any, world: LargeWorld, template: str) -> None:
    route = ROUTES[template]
    methods = st.sampled_from(sorted(route.methods & {"POST", "PUT", "PATCH"}) * 4 + ["DELETE"])
    tries = st.sampled_from(["", "", "", "dry_run=true", "dry_run=false", "dry_run=x"])
    request = st.tuples(methods, strategies.bodies(MEMBERS[template]), strategies.body_headers, tries)

    @compared
    @given(callers, prefixes, st.sampled_from(["user", "other"]), st.lists(request, min_size=1, max_size=4))
    def check(who: tuple[str, str], prefix: str, whose: str, requests: list[Any]) -> None:
        caller, path = world.callers[who[0]][who[1]], world.get_path(route, prefix, whose=whose)
        built = [
            # A server hides the charset from Django, which would read the query by it.
            Sent(method, path, b"" if method == "DELETE" else body, headers, "" if "16" in str(headers) else query)
            for method, body, headers, query in requests
        ]
        completed = [complete(compare, caller, each) for each in built]
        compare(*completed, Sent("GET", path, headers=caller.headers or {}, query="sort=id&order=desc"))

    check()


@pytest.mark.parametrize("template", ["users", "orders", "users/<user_id>/posts"])
def test_lines(compare: Any, world: LargeWorld, template: str) -> None:
    """Several bodies in one request, with and without a key, which the next request may have, too."""
    route, members = ROUTES[template], MEMBERS[template]
    good = f"{{{', '.join(members)}}}".encode()
    line = st.one_of(st.just(good), st.just(good.replace(b"new@", b"newer@")), strategies.bodies(members))
    lines = st.tuples(st.lists(line, min_size=1, max_size=5), st.sampled_from([b"\n", b"\n", b"\r\n"])).map(
        lambda parts: parts[1].join(parts[0])
    )
    media_types = ["application/x-ndjson", "application/x-ndjson", "Application/X-NDJSON; charset=UTF-8"]
    headers = st.tuples(
        st.sampled_from([{}, {"Idempotency-Key": "one"}]),
        st.sampled_from([{"Content-Type": media_type} for media_type in media_types]),
    ).map(lambda parts: {**parts[0], **parts[1]})
    queries = ("", "", "partial=true", "partial=true", "dry_run=true", "partial=true&dry_run=true", "partial=x")
    query = st.sampled_from([*queries, "fields=id", "envelope=false&partial=true"])
    request = st.tuples(lines, headers, query)

    @compared
    @given(callers, st.sampled_from(["/api/v2"] * 4 + ["/api/v1"]), st.lists(request, min_size=1, max_size=3))
    def check(who: tuple[str, str], prefix: str, requests: list[Any]) -> None:
        caller, path = world.callers[who[0]][who[1]], world.get_path(route, prefix, whose=who[0])
        built = [Sent("POST", path, body, headers, query) for body, headers, query in requests]
        listed = Sent("GET", path, headers=caller.headers or {}, query="sort=id&order=desc")
        compare(*(complete(compare, caller, each) for each in built), listed)

    check()


@pytest.mark.parametrize("template", MEMBERS)
def test_bodies(compare: Any, world: LargeWorld, template: str) -> None:
    """A body with each value in the place of each member, and each malformed body."""
    route, caller = ROUTES[template], world.callers["admin"]["JWT"]
    path, method = world.get_path(route, whose="admin"), "POST" if "POST" in route.methods else "PUT"
    headers = {**(caller.headers or {}), **({"Idempotency-Key": "one"} if template == "payments" else {})}
    members = dict(member.split(": ", maxsplit=1) for member in MEMBERS[template])
    altered = [{**members, name: value} for name in (*members, *FURTHER.get(template, ())) for value in TOKENS]
    bodies = [", ".join(f"{name}: {value}" for name, value in each.items()) for each in altered]
    for body in (*(f"{{{each}}}".encode() for each in bodies), *MALFORMED):
        compare(Sent(method, path, body, headers))


@pytest.mark.parametrize(
    "template", [name for name, route in ROUTES.items() if name in MEMBERS and "POST" in route.methods]
)
@pytest.mark.parametrize("who", ["user", "admin"])
def test_idempotency_keys(compare: Any, world: LargeWorld, template: str, who: str) -> None:
    """New keys, repeated ones, ones that are used for another request, and malformed ones."""
    caller, path = world.callers[who]["JWT"], world.get_path(ROUTES[template], whose=who)
    body, other = (f"{{{', '.join(MEMBERS[template])}{more}}}".encode() for more in ("", ', "nothing": 1'))
    wrong = b'{"nothing": 1}'
    for key in ("one", '"one"', " one ", "", '"', "x" * 256, "a,b", "é"):
        headers = {**(caller.headers or {}), "Idempotency-Key": key}
        sent = [Sent("POST", path, each, headers) for each in (body, body, b" " + body, other, wrong, b"", body)]
        compare(*sent, Sent("POST", path, body, {**headers, "Idempotency-Key": "another"}))


@pytest.mark.parametrize("route", LISTS, ids=str)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_by_cursor(compare: Any, world: LargeWorld, route: Route, order: str) -> None:
    """There and back, with altered cursors and with those of another order."""
    caller, path = world.callers["admin"]["JWT"], world.get_path(route)
    for sort in route.view.sortable:
        query, cursor, met = f"sort={sort}&order={order}&limit=9", "", []
        for relation in ("nextCursor", "prevCursor"):
            for _ in range(3):
                (page,) = compare(Sent("GET", path, headers=caller.headers or {}, query=f"{query}&cursor={cursor}"))
                found = json.loads(page.body)["meta"][relation]
                if found is None:
                    break
                met.append(cursor := found)
        for one in met[:1]:
            altered = (
                one[:-1],
                one + "A",
                one[:5] + "-" + one[6:],
                f"{one}%3D",
                f"{one}&cursor={one}",
                f"{one}&page=1",
            )
            queries = [f"{query}&cursor={each}" for each in altered]
            queries += [f"cursor={one}", f"sort={sort}&order={order}&limit=2&fields=id&cursor={one}"]
            compare(*(Sent("GET", path, headers=caller.headers or {}, query=each) for each in queries))


@pytest.mark.parametrize("template", ["users/<id>", "posts/<id>", "comments/<id>"])
def test_conditional_writes(compare: Any, world: LargeWorld, template: str) -> None:
    """The tag of a row, before and after it was written, and that of a row that was added."""
    caller, path = world.callers["admin"]["JWT"], world.get_path(ROUTES[template])
    headers = caller.headers or {}
    (found,) = compare(Sent("GET", path, headers=headers))
    tag, body = found.headers["ETag"], f"{{{', '.join(MEMBERS[template])}}}".encode()
    for method in ("PUT", "PATCH", "DELETE"):
        for condition in ({"If-Match": tag}, {"If-Match": "*"}, {"If-Match": '"x"'}, {"If-None-Match": tag}):
            sent = Sent(method, path, b"" if method == "DELETE" else body, {**headers, **condition})
            compare(sent, sent, Sent("GET", path, headers={**headers, "If-None-Match": tag}), sent)


@pytest.mark.parametrize("template", ["orders", "payments", "users/<user_id>/posts", "posts/<post_id>/comments"])
def test_row_that_was_added_is_read(compare: Any, world: LargeWorld, template: str) -> None:
    for who in ("user", "admin"):
        caller, path = world.callers[who]["API key"], world.get_path(ROUTES[template], whose=who)
        headers, body = {**(caller.headers or {})}, f"{{{', '.join(MEMBERS[template])}}}".encode()
        own = f"/api/v1/{template.rpartition('/')[2]}/{LAST_ID + 1}"
        compare(
            *(Sent("POST", path, body, {**headers, "Idempotency-Key": f"key-{number}"}) for number in range(3)),
            Sent("GET", own, headers=headers),
            Sent("GET", path, headers=headers, query="sort=created_at&order=desc&limit=2"),
            Sent("GET", path, headers=headers, query="sort=created_at&order=desc&limit=2&cursor="),
            Sent("DELETE", own, headers=headers),
            Sent("GET", path, headers=headers, query="page=3&limit=2&envelope=false"),
        )
