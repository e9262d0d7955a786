"""Whole lists as NDJSON and CSV: their rows, what they refuse, and the one moment that they show."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest

from config.api import streams
from config.api.listing import bounded
from config.postgresql import words
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import Caller, with_bearer_of, with_key, with_password
from tests.contract.world import rolled_back
from users import services
from users.models import User

NDJSON, CSV = "application/x-ndjson", "text/csv"
NAMES = ("Anna Meyer", '=2+5" ,\r\nx', "-Bert", "＠cmd", "Zoë, 王小明")


class World:
    def __init__(self) -> None:
        self.users = [
            services.create(
                name=NAMES[number % 5].replace("\r\n", " "),
                email=f"p{number}@example.com",
                role=("admin", "support", "user")[number % 3],
                password=None,
            )
            for number in range(30)
        ]
        for number in range(25):
            user = self.users[number % 4]
            Order.objects.create(user=user, item=f"Item\u2028\u2029{number % 3}", qty=number % 6 + 1)
            Payment.objects.create(user=user, amount=number + 1)
            post = Post.objects.create(user=user, title=f"T{number % 3}", body="a\r\n\tb")
            Comment.objects.bulk_create([Comment(post=post, user=user, text=f"C{each}") for each in range(number % 5)])
        self.admin, self.user = with_bearer_of(self.users[0]), with_bearer_of(self.users[2])


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    with django_db_blocker.unblock(), rolled_back():
        yield World()


@pytest.fixture(params=["short", "long"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a list is sent as a whole, or piece by piece."""
    if request.param == "long":
        monkeypatch.setattr(streams, "FIRST_BYTES", 1100)
        monkeypatch.setattr(streams, "ROWS_OF_A_PIECE", 4)
    return str(request.param)


def fetch(caller: Caller, path: str, accept: str = NDJSON, **headers: str) -> Any:
    """The response, read to its end: what is left half-way may be given back in the middle of another test."""
    response = caller.fetch("GET", path, Accept=accept, **headers)
    response.read = response.getvalue()
    return response


def read(response: Any) -> bytes:
    content: bytes = response.read
    return content


def rows_of(response: Any) -> list[Any]:
    assert response.status_code == 200, response.read
    # As text it ends at more characters, which many clients split at, too.
    return [json.loads(line) for line in read(response).decode().splitlines()]


def walk(caller: Caller, path: str, query: dict[str, Any]) -> list[Any]:
    rows, cursor = [], ""
    while cursor is not None:
        answer = caller.get(f"{path}?{urlencode({**query, 'limit': 100, 'cursor': cursor})}")
        assert answer.status == 200, answer
        rows += answer.data
        cursor = answer.meta["nextCursor"]
    return rows


QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("/api/v2/users", {}),
    ("/api/v2/users", {"sort": "name", "order": "desc", "role": "admin,user", "fields": "id,name"}),
    ("/api/v2/users", {"sort": "created_at", "created_at[gte]": "2020-01-01T00:00:00Z", "status": "active"}),
    ("/api/v2/users", {"q": "anna", "sort": "email", "order": "desc"}),
    ("/api/v2/orders", {"sort": "qty", "qty[gt]": 2}),
    ("/api/v2/payments", {"sort": "amount", "order": "desc"}),
    ("/api/v2/posts", {"sort": "title"}),
    ("/api/v2/posts", {"fields": "comments,title"}),
    ("/api/v2/users/{0}/orders", {}),
    ("/api/v2/users/{0}/posts", {"order": "desc"}),
    ("/api/v2/users/{0}/payments", {}),
    ("/api/v2/api-keys", {"sort": "name"}),
    ("/api/v2/orders", {"user_id": "{0},{1}", "sort": "item"}),
]


@pytest.mark.usefixtures("length")
@pytest.mark.django_db
@pytest.mark.parametrize(("path", "query"), QUERIES)
@pytest.mark.parametrize("who", ["admin", "user"])
def test_rows_are_those_of_the_pages(world: World, path: str, query: dict[str, Any], who: str) -> None:
    ids = [world.users[2].pk, world.users[3].pk]
    path = path.format(*ids)
    if who == "user":
        query = {name: value for name, value in query.items() if name != "user_id"}
    query = {name: value.format(*ids) if isinstance(value, str) else value for name, value in query.items()}
    caller: Caller = getattr(world, who)
    expected = walk(caller, path, query)
    response = fetch(caller, f"{path}?{urlencode(query)}")
    assert response.headers["Content-Type"] == NDJSON
    assert rows_of(response) == expected
    total = caller.get(f"{path}?{urlencode({**query, 'page': 1})}").meta["total"]
    assert response.headers["X-Total-Count"] == str(total) == str(len(expected))
    table = fetch(caller, f"{path}?{urlencode(query)}", CSV)
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    found = list(csv.DictReader(io.StringIO(read(table).decode(), newline=""), strict=True))
    assert [to_text(row) for row in expected] == found
    assert [list(row) for row in found] == [list(row) for row in expected]


def to_text(row: dict[str, Any]) -> dict[str, str]:
    """A row as CSV shows it, made in another way."""
    shown = {}
    for name, value in row.items():
        text = value if isinstance(value, str) else "" if value is None else json_text(value)
        is_formula = isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "＠"}
        shown[name] = f"'{text}" if is_formula else text
    return shown


def json_text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.django_db
def test_bytes_of_a_row_are_those_of_the_page(world: World, length: str) -> None:
    page = world.admin.fetch("GET", "/api/v2/posts?limit=100&envelope=false").content
    assert b"[" + b",".join(read(fetch(world.admin, "/api/v2/posts")).splitlines()) + b"]" == page
    assert fetch(world.admin, "/api/v2/posts").streaming == (length == "long")


@pytest.mark.usefixtures("length")
@pytest.mark.django_db
def test_search_for_common_words_gives_all_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MAX_ROWS", 2)
    monkeypatch.setattr(words, "MAX_PROBED_OF_ONE", 2)
    monkeypatch.setattr(bounded, "MAX_LOOKED_AT", 5)
    for order, role in product(("asc", "desc"), ("", "&role=support")):
        query = f"q=example&sort=name&order={order}{role}"
        ids = [row["id"] for row in rows_of(fetch(world.admin, f"/api/v2/users?fields=id&{query}"))]
        expected = User.objects.filter(role__in=["support"] if role else ["admin", "support", "user"])
        sign = "-" if order == "desc" else ""
        assert ids == list(expected.order_by(f"{sign}name", f"{sign}pk").values_list("pk", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize("most", [2, 3, 6, 100])
def test_total_is_told_where_a_page_tells_it(world: World, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in [
        *("users", "users?role=admin", "users?role=admin,user", "users?email=p1@example.com", "users?id=1,2,3"),
        *("users?q=anna", "users?q=example", "users?q=none", "users?q=anna&role=user", "users?id[gt]=5&sort=id"),
        *("orders", "orders?sort=qty&qty[gt]=5", "orders?sort=qty&qty[lt]=-1", "orders?user_id={0},{1}", "posts?q=t1"),
    ]:
        for module, name in ((bounded, "MAX_COUNTED"), (words, "MAX_PROBED_OF_ONE"), (bounded, "MAX_LOOKED_AT")):
            monkeypatch.setattr(module, name, most)
        address = path.format(world.users[2].pk, world.users[3].pk)
        page = world.admin.get(f"/api/v2/{address}{'&' if '?' in address else '?'}page=1&limit=1").meta
        for method in ("GET", "HEAD"):
            response = world.admin.fetch(method, f"/api/v2/{address}", Accept=NDJSON)
            response.getvalue()
            told = response.headers.get("X-Total-Count")
            assert told == (None if page["total"] is None else str(page["total"]))


@pytest.mark.usefixtures("length")
@pytest.mark.django_db
def test_no_row_is_an_empty_stream(world: World) -> None:
    path = "/api/v2/users?role=admin&status=inactive&fields=id,name"
    assert read(fetch(world.admin, path)) == b""
    assert read(fetch(world.admin, path, CSV)) == b"id,name\r\n"


@pytest.mark.django_db
def test_head_has_the_headers_and_no_rows(world: World) -> None:
    response = world.admin.fetch("HEAD", "/api/v2/users", Accept=CSV)
    assert (response.status_code, response.headers["X-Total-Count"]) == (200, "30")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert "Content-Length" not in response.headers
    assert response.getvalue() == b""


@pytest.mark.django_db
def test_what_a_stream_does_not_have_is_refused(world: World) -> None:
    for query, names in [
        ("page=1", {"page"}),
        ("limit=5&cursor=", {"limit", "cursor"}),
        ("offset=0&fields=secret", {"offset", "fields"}),
        ("envelope=true", {"envelope"}),
        ("surprise=1", {"surprise"}),
        ("sort=name&created_at[gt]=2026-01-01T00:00:00Z", {"created_at[gt]"}),
        ("q=%00", {"q"}),
    ]:
        answer = world.admin.get(f"/api/v2/users?{query}", Accept=CSV)
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", names)
        assert answer.headers["Content-Type"] == "application/json"
        assert world.admin.get("/api/v2/orders?include=user", Accept=CSV).fields == {"include"}


@pytest.mark.django_db
def test_stream_needs_what_the_list_needs(world: World) -> None:
    without = with_key(world.users[0], ["posts:read"])
    assert without.get("/api/v2/users", Accept=NDJSON).code == "INSUFFICIENT_SCOPE"
    assert Caller().get("/api/v2/users", Accept=NDJSON).code == "UNAUTHENTICATED"
    assert world.user.get("/api/v2/orders?user_id=1", Accept=NDJSON).fields == {"user_id"}
    assert world.user.get(f"/api/v2/users/{world.users[0].pk}/orders?page=1", Accept=NDJSON).code == "NOT_FOUND"
    assert world.user.get("/api/v2/users", Accept=NDJSON, If_Match='"a"').code == "PRECONDITION_FAILED"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/users", "/users", "/api/v2/users/{0}", "/api/v2/versions"])
def test_only_lists_from_version_2_on_are_streamed(world: World, path: str) -> None:
    path = path.format(world.users[0].pk)
    assert world.admin.get(path, Accept=NDJSON).code == "NOT_ACCEPTABLE"
    answer = world.admin.get(path, Accept=f"{NDJSON}, application/json;q=0.5")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")


@pytest.mark.django_db
def test_best_type_is_answered(world: World) -> None:
    for accept, content_type in [
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        (f"{NDJSON};q=0.5, {CSV}", "text/csv; charset=utf-8; header=present"),
        ("application/json;version=2;q=0.1, application/x-ndjson", NDJSON),
        (f"{NDJSON};q=0.5, application/json", "application/json"),
    ]:
        response = fetch(world.admin, "/users?version=2", accept)
        assert response.headers["Content-Type"] == content_type
        assert "Accept" in response.headers["Vary"]
        assert response.headers["API-Version"] == "2"


@pytest.mark.usefixtures("length")
@pytest.mark.django_db
def test_stream_is_compressed_for_programs_that_accept_it(world: World) -> None:
    plain = read(fetch(world.admin, "/api/v2/users"))
    response = fetch(world.admin, "/api/v2/users", Accept_Encoding="gzip")
    assert response.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in response.headers["Vary"]
    assert gzip.decompress(read(response)) == plain
    # Its length would tell of what it holds to a page that makes a browser ask.
    by_password = with_password(
        services.create(name="B", email="b@x.yz", role="admin", password="four plain words here")
    )
    assert "Content-Encoding" not in fetch(by_password, "/api/v2/users", Accept_Encoding="gzip").headers
    # Secrets are never compressed.
    assert "Content-Encoding" not in fetch(world.admin, "/api/v2/api-keys", Accept_Encoding="gzip").headers
