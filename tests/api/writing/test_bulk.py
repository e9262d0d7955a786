"""Many new rows by one POST: what is answered, what is refused, and that it is the same as of single ones."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from config.models import IdempotencyRecord
from orders.models import Order
from posts.models import Post
from tests.conftest import Answer, Caller, find_wrong_counts
from users.models import User

pytestmark = pytest.mark.django_db

NDJSON = "application/x-ndjson"
MADE_UP = {"id", "created_at", "updated_at", "_links"}


def join(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def send(caller: Caller, path: str, lines: list[Any] | bytes, **headers: str) -> Answer:
    raw = lines if isinstance(lines, bytes) else join(lines)
    return caller(
        "POST", path if path.startswith("/api") else f"/api/v2{path}", raw=raw, Content_Type=NDJSON, **headers
    )


def person(number: int, **others: object) -> dict[str, object]:
    return {"name": f"Person {number}", "email": f"person{number}@example.org", **others}


def paths(caller: Caller) -> dict[str, tuple[str, list[dict[str, object]]]]:
    """Each address that takes lines, with some."""
    return {
        "users": ("/users", [person(1), person(2, role="support" if caller.headers is None else "user")]),
        "orders": ("/orders", [{"item": "Tea", "qty": 2}, {"item": "Milk", "qty": 1, "user_id": caller.user.pk}]),
        "posts": (f"/users/{caller.user.pk}/posts", [{"title": "One"}, {"title": "Two", "body": "Text\n\tand more"}]),
    }


KINDS = ("users", "orders", "posts")
every_kind = pytest.mark.parametrize("kind", KINDS)


def count() -> tuple[int, int, int, int]:
    models = (User, Order, Post, IdempotencyRecord)
    users, orders, posts, records = (model.objects.count() for model in models)
    return users, orders, posts, records


@every_kind
def test_each_line_is_what_a_single_request_makes(admin: Caller, kind: str) -> None:
    path, lines = paths(admin)[kind]
    answer = send(admin, path, lines)
    assert answer.status == 201, answer
    assert set(answer.body) == {"success", "data", "meta"}
    assert (answer.body["success"], answer.meta) == (True, {"created": 2})
    assert [set(item) for item in answer.data] == [{"line", "status", "data"}] * 2
    assert [(item["line"], item["status"]) for item in answer.data] == [(1, 201), (2, 201)]
    assert not {"Location", "ETag", "Dry-Run", "Idempotent-Replayed"} & {*answer.headers}
    shown = [item["data"] for item in answer.data]
    assert shown[0]["id"] < shown[1]["id"]
    for line, data in zip(lines, shown, strict=True):
        read = admin.get(f"/api/v2/{kind}/{data['id']}").data
        assert {**read, "_links": None} == {**data, "_links": None}
        single = admin.post(f"/api/v2{path}", line if kind != "users" else {**line, "email": f"x{line['email']}"})
        expected = {**single.data, **({"email": line["email"]} if kind == "users" else {})}
        assert {name: value for name, value in data.items() if name not in MADE_UP} == {
            name: value for name, value in expected.items() if name not in MADE_UP
        }
    assert find_wrong_counts() == []


@every_kind
def test_fields_and_envelope_shape_the_answer(admin: Caller, kind: str) -> None:
    path, lines = paths(admin)[kind]
    chosen = send(admin, f"{path}?fields=id", lines)
    assert [set(item["data"]) for item in chosen.data] == [{"id"}, {"id"}]
    if kind == "users":
        lines = [person(3), person(4)]
    bare = send(admin, f"{path}?envelope=false&fields=id", lines)
    assert (bare.status, [item["line"] for item in bare.body]) == (201, [1, 2])


def test_every_problem_of_every_line_is_told_and_nothing_done(admin: Caller, user: Caller) -> None:
    before = count()
    lines = [
        person(1),
        {"name": "", "email": "no email", "colour": "red"},
        person(3, email=user.user.email.upper()),
        {"email": "PERSON1@example.org"},
        person(5, role="king", status=None),
    ]
    answer = send(admin, "/users", lines)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    told = [detail["field"] for detail in answer.error["details"]]
    assert told == [
        *("lines[2].colour", "lines[2].name", "lines[2].email"),
        "lines[3].email",
        *("lines[4].name", "lines[4].email"),
        *("lines[5].role", "lines[5].status"),
    ]
    messages = {detail["field"]: detail["message"] for detail in answer.error["details"]}
    assert messages["lines[3].email"] == "Another user has this email address."
    assert messages["lines[4].email"] == "An earlier line has this email address."
    assert count() == before
    problem = send(admin, "/users", lines, Accept="application/problem+json")
    assert problem.body["details"] == answer.error["details"]


def test_partial_adds_what_is_good_and_tells_the_rest(admin: Caller, user: Caller) -> None:
    lines = [
        {"name": "", "email": "person2@example.org"},
        person(2),
        person(3, email=user.user.email),
        person(4, email="PERSON2@example.org"),
        person(5, role="admin"),
        person(6),
    ]
    answer = send(admin, "/users?partial=true", lines)
    assert (answer.status, answer.body["success"], answer.meta) == (207, True, {"created": 2})
    assert [(item["line"], item["status"]) for item in answer.data] == [
        *((1, 400), (2, 201), (3, 409), (4, 409), (5, 403), (6, 201)),
    ]
    assert [set(item) for item in answer.data if item["status"] != 201] == [{"line", "status", "error"}] * 4
    errors = {item["line"]: item["error"] for item in answer.data if "error" in item}
    for number in (1, 3, 5):
        single = admin.post("/api/v2/users", lines[number - 1])
        assert (single.error, single.status) == (errors[number], answer.data[number - 1]["status"])
    assert errors[4]["details"] == [{"field": "email", "message": "An earlier line has this email address."}]
    assert User.objects.filter(email__endswith="example.org").count() == 2
    assert find_wrong_counts() == []


def test_partial_where_all_or_none_is_good(admin: Caller) -> None:
    none = send(admin, "/orders?partial=true", [{"item": "", "qty": 0}, {}], Idempotency_Key="k")
    assert (none.status, none.meta, Order.objects.count()) == (207, {"created": 0}, 0)
    assert not IdempotencyRecord.objects.exists()
    every = send(admin, "/orders?partial=true", [{"item": "Tea", "qty": 1}], Idempotency_Key="k")
    assert (every.status, every.meta, IdempotencyRecord.objects.count()) == (207, {"created": 1}, 1)
    default = send(admin, "/orders?partial=false", [{"item": "Tea", "qty": 1}])
    assert default.status == 201


@pytest.mark.parametrize("value", ["", "1", "True", "true&partial=true"])
def test_partial_is_true_or_false(admin: Caller, value: str) -> None:
    answer = send(admin, f"/orders?partial={value}", [{"item": "Tea", "qty": 1}])
    assert (answer.status, answer.fields, Order.objects.count()) == (400, {"partial"}, 0)


def test_single_writes_know_no_partial(admin: Caller) -> None:
    for version in ("v2", "v1"):
        answer = admin.post(f"/api/{version}/orders?partial=true", {"item": "Tea", "qty": 1})
        assert (answer.status == 400) == (version == "v2")


# --- What is no NDJSON

BAD = [
    b"",
    b"[]",
    b"1",
    b'"text"',
    b"null",
    b"{",
    b'{"item": "Tea"} {}',
    b'{"a": 1, "a": 2}',
    b'{"a": NaN}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'\xef\xbb\xbf{"item": "Tea", "qty": 1}',
    b'{"a":' * 33 + b"1" + b"}" * 33,
    b"[" * 2000 + b"]" * 2000,
    b"{'item': 1}",
    b"\x00",
    b"// comment",
    b'{"item": "a\rb", "qty": 1}',
    b'\x1e{"item": "Tea", "qty": 1}',
]


@pytest.mark.parametrize("query", ["", "?partial=false", "?dry_run=true"])
def test_line_that_is_no_object_is_malformed(admin: Caller, query: str) -> None:
    for bad in BAD:
        good = b'{"item": "Tea", "qty": 1}'
        answer = send(admin, f"/orders{query}", b"\n".join([good, good, bad, good, bad, good]))
        assert (answer.status, answer.code) == (400, "MALFORMED_JSON"), answer
        assert answer.fields == {"lines[3]", "lines[5]"}
        assert not Order.objects.exists()


LONG = b'{"a":[' + b"1," * 10_000 + b"1]}"


@pytest.mark.parametrize(
    ("kind", "bad"),
    [*product(["orders"], [*BAD, LONG]), *product(["users", "posts"], [b"", b"[]", b"{", LONG])],
    ids=lambda value: value[:20],
)
def test_partial_tells_of_a_line_that_is_no_object_as_of_any_other(admin: Caller, kind: str, bad: bytes) -> None:
    path, (one, two) = paths(admin)[kind]
    first, last = json.dumps(one).encode(), json.dumps(two).encode()
    raw = b"\n".join([first, bad, b"{}", bad, last])
    tried = send(admin, f"{path}?partial=true&dry_run=true", raw)
    before, answer = count(), send(admin, f"{path}?partial=true", raw, Idempotency_Key="k")
    code, status = ("MALFORMED_JSON", 400) if len(bad) < 10_000 else ("PAYLOAD_TOO_LARGE", 413)
    assert (answer.status, answer.meta, tried.meta) == (207, {"created": 2}, {"created": 2})
    assert [line["status"] for line in answer.data] == [201, status, 400, status, 201]
    for line in (answer.data[1], tried.data[1], answer.data[3]):
        assert line["error"]["code"] == code
        assert "line" in line["error"]["message"]
    assert sum(count()[:3]) == sum(before[:3]) + 2
    again = send(admin, f"{path}?partial=true", raw, Idempotency_Key="k")
    assert again.response.content == answer.response.content
    changed = send(
        admin, f"{path}?partial=true", b"\n".join([first, bad + b"x", b"{}", bad, last]), Idempotency_Key="k"
    )
    assert changed.status == 422


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_ends_of_lines(admin: Caller, end: bytes) -> None:
    good = b'{"item": "Tea", "qty": 1}'
    answer = send(admin, "/orders", good + b" \r\n\t" + good + end)
    assert (answer.status, answer.meta) == (201, {"created": 2})


@pytest.mark.parametrize("raw", [b"", b"\n", b"\n\n", b" "])
def test_body_without_a_line_is_malformed(admin: Caller, raw: bytes) -> None:
    answer = send(admin, "/orders", raw)
    assert (answer.status, answer.code) == (400, "MALFORMED_JSON")


def test_thousand_lines_and_no_more(admin: Caller) -> None:
    line = {"item": "Tea", "qty": 1}
    answer = send(admin, "/orders?fields=id", [line] * 1000)
    assert (answer.status, answer.meta, len(answer.data)) == (201, {"created": 1000}, 1000)
    assert find_wrong_counts() == []
    more = send(admin, "/orders?partial=true", [line] * 1001)
    assert (more.status, more.code, Order.objects.count()) == (413, "PAYLOAD_TOO_LARGE", 1000)
    assert send(admin, "/orders", b"\n" * 1001).status == 413


def test_mebibyte_and_no_more(admin: Caller) -> None:
    path = f"/users/{admin.user.pk}/posts?fields=id"
    line = join([{"title": "One", "body": "x" * 19_900}])
    raw = line * (1024 * 1024 // len(line))
    assert send(admin, path, raw).status == 201
    raw += b" " * (1024 * 1024 - len(raw))
    assert send(admin, path, raw.replace(b"}\n ", b"}  ")).status == 201
    longer = send(admin, path, raw + b" ")
    assert (longer.status, longer.code) == (413, "PAYLOAD_TOO_LARGE")
    assert admin.post(f"/api/v2{path}", {"title": "One", "body": "x" * 300_000}).status == 413


@pytest.mark.parametrize(
    "line", [b'{"a":[' + b"1," * 60_000 + b"1]}", b"\n".join([b'{"a":[' + b"1," * 4_000 + b"1]}"] * 120)]
)
def test_what_takes_long_to_parse_is_too_long(admin: Caller, line: bytes) -> None:
    answer = send(admin, "/orders", line)
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")


# --- Versions, media types, other endpoints


@pytest.mark.parametrize("prefix", ["/api/v1", "/api", ""])
@every_kind
def test_version_1_does_not_know_it(admin: Caller, kind: str, prefix: str) -> None:
    path, lines = paths(admin)[kind]
    before = count()
    answer = admin("POST", f"{prefix}{path}", raw=join(lines), Content_Type=NDJSON)
    other = admin("POST", f"{prefix}{path}", raw=join(lines), Content_Type="text/plain")
    assert (answer.status, answer.error, answer.headers["Accept"]) == (415, other.error, "application/json")
    assert count() == before


def test_media_type(admin: Caller) -> None:
    line = join([{"item": "Tea", "qty": 1}])
    for taken in (
        "application/x-ndjson",
        "Application/X-NDJSON; charset=UTF-8",
        'application/x-ndjson;charset="utf-8"',
    ):
        assert admin("POST", "/api/v2/orders", raw=line, Content_Type=taken).status == 201
    for refused in ("application/x-ndjson;charset=utf-16", "application/ndjson", "application/jsonl"):
        answer = admin("POST", "/api/v2/orders", raw=line, Content_Type=refused)
        assert (answer.status, answer.headers["Accept"]) == (415, "application/json, application/x-ndjson")


def test_nothing_else_takes_lines(admin: Caller) -> None:
    for method, path in [
        ("POST", "/payments"),
        ("POST", "/posts/1/comments"),
        ("PATCH", "/users/{id}"),
        ("PUT", "/users/{id}"),
        ("POST", "/login"),
    ]:
        address = f"/api/v2{path.format(id=admin.user.pk)}"
        answer = admin(method, address, raw=join([{"amount": "1.00"}]), Content_Type=NDJSON, Idempotency_Key="k")
        assert answer.status in {400, 415}, answer
        if path != "/login":
            assert answer.code == "UNSUPPORTED_MEDIA_TYPE"
        assert admin("POST", f"/api/v2/users/{admin.user.pk}/orders", raw=b"{}", Content_Type=NDJSON).status == 405


# --- Rights


def test_forbidden_field_of_any_line_is_403_before_any_value_is_looked_at(user: Caller, other: Caller) -> None:
    theirs = {"item": "Tea", "qty": 1, "user_id": other.user.pk}
    lines = [{"item": "", "qty": 0}, theirs, {"item": "Tea", "qty": 1}, {**theirs, "qty": "x"}]
    answer = send(user, "/orders", lines)
    assert (answer.status, answer.code, answer.fields) == (403, "FORBIDDEN", {"lines[2].user_id", "lines[4].user_id"})
    partial = send(user, "/orders?partial=true", lines)
    assert [item["status"] for item in partial.data] == [400, 403, 201, 403]
    assert list(Order.objects.values_list("user_id", flat=True)) == [user.user.pk]


def test_orders_for_many_users(admin: Caller, user: Caller, other: Caller) -> None:
    owners = [user.user.pk, other.user.pk, admin.user.pk, None, 10**9, 2**70, "1", True, user.user.pk]
    lines = [{"item": "Tea", "qty": 1, "user_id": owner} for owner in owners]
    answer = send(admin, "/orders", lines)
    assert (answer.status, answer.fields) == (400, {f"lines[{number}].user_id" for number in (4, 5, 6, 7, 8)})
    partial = send(admin, "/orders?partial=true", lines)
    assert [item["status"] for item in partial.data] == [201, 201, 201, 400, 400, 400, 400, 400, 201]
    assert admin.delete(f"/api/v2/users/{other.user.pk}").status == 204
    gone = send(admin, "/orders", lines[:2])
    assert (gone.status, gone.fields) == (400, {"lines[2].user_id"})


# --- Passwords


def test_password_of_a_line_is_the_users(admin: Caller) -> None:
    answer = send(admin, "/users", [person(1, password="four other words instead"), person(2)])
    assert answer.status == 201
    assert "password" not in answer.data[0]["data"]
    login = Caller().post("/api/login", {"email": "person1@example.org", "password": "four other words instead"})
    assert login.status == 200
    assert not User.objects.get(email="person2@example.org").has_usable_password()
    weak = send(admin, "/users", [person(3, password="person 3"), person(4, password="12345678")])
    assert (weak.status, weak.fields) == (400, {"lines[1].password", "lines[2].password"})


def test_few_lines_may_have_a_password(admin: Caller) -> None:
    lines = [person(number, password="four other words instead") for number in range(1, 23)]
    answer = send(admin, "/users?dry_run=true", [*lines, {"password": "x"}])
    assert (answer.status, answer.fields) == (
        400,
        {"lines[21].password", "lines[22].password", "lines[23].password", "lines[23].name", "lines[23].email"},
    )
    partial = send(admin, "/users?partial=true&fields=id", lines)
    assert [item["status"] for item in partial.data] == [201] * 20 + [400] * 2


# --- Keys


@every_kind
def test_key_covers_the_whole_request(admin: Caller, kind: str) -> None:
    path, lines = paths(admin)[kind]
    first = send(admin, path, lines, Idempotency_Key="one")
    before = count()
    again = send(admin, f"{path}?fields=id", lines, Idempotency_Key="one")
    assert (again.status, again.response.content) == (201, first.response.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Location" not in again.headers
    spelled = b"\r\n".join(json.dumps(dict(reversed(line.items())), indent=None).encode() for line in lines)
    assert send(admin, path, spelled, Idempotency_Key="one").response.content == first.response.content
    for other in (lines[:1], lines[::-1], [*lines, lines[0]]):
        reused = send(admin, path, other, Idempotency_Key="one")
        assert (reused.status, reused.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert count() == before
    bad = send(admin, path, lines, Idempotency_Key="a, b")
    assert (bad.status, bad.code) == (400, "IDEMPOTENCY_KEY_INVALID")


def test_single_body_is_not_its_line(admin: Caller) -> None:
    body = {"item": "Tea", "qty": 1}
    assert admin.post("/api/v2/orders", body, Idempotency_Key="k").status == 201
    assert send(admin, "/orders", [body], Idempotency_Key="k").status == 422
    assert send(admin, "/orders", [body], Idempotency_Key="l").status == 201
    assert admin.post("/api/v2/orders", body, Idempotency_Key="l").status == 422


@pytest.mark.parametrize("kind", ["users", "orders"])
def test_stored_answer_goes_with_any_user_that_it_shows(admin: Caller, user: Caller, other: Caller, kind: str) -> None:
    lines: list[Any] = [person(1), person(2)]
    if kind == "orders":
        lines = [{"item": "Tea", "qty": 1, "user_id": each.user.pk} for each in (user, other)]
    first = send(admin, f"/{kind}", lines, Idempotency_Key="k")
    data = first.data[1]["data"]
    gone = data["id"] if kind == "users" else data["user_id"]
    assert admin.delete(f"/api/v2/users/{gone}").status == 204
    assert not IdempotencyRecord.objects.exists()
    # It is new, and one of its users is not there.
    again = send(admin, f"/{kind}?partial=true", lines, Idempotency_Key="k")
    assert "Idempotent-Replayed" not in again.headers
    assert [item["status"] for item in again.data] == ([409, 201] if kind == "users" else [201, 400])
