"""Cursors: opaque, sealed, and good for one list in one order only."""

import base64
import string
from urllib.parse import quote

import pytest

from orders.models import Order
from posts.models import Post
from tests.api.wire import error_of, quickly, send
from tests.conftest import Caller, with_key

ALPHABET = string.ascii_letters + string.digits + "-_"
EMAIL = "readable.value@example.com"


@pytest.fixture
def people(admin: Caller, make_user) -> None:
    for role in ("user", "support", "user", "user", "admin", "support"):
        make_user(role, name="Readable Value", email=f"{make_user().pk}.{EMAIL}")


@pytest.fixture
def cursor(admin: Caller, people: None) -> str:
    """Of `/users?limit=3`, to its second page."""
    return admin.get("/users?limit=3&cursor=").meta["nextCursor"]


def refused(caller: Caller, address: str) -> bool:
    answer = caller.get(address)
    assert answer.status in {200, 400}, answer
    return answer.status == 400 and answer.code == "INVALID_CURSOR" and answer.fields == {"cursor"}


def test_cursor_is_made_of_url_safe_characters(admin: Caller, cursor: str) -> None:
    assert set(cursor) <= set(ALPHABET + ".~")
    assert admin.get(f"/users?cursor={cursor}").status == 200


def test_cursor_with_any_one_character_changed_is_refused(admin: Caller, cursor: str) -> None:
    accepted = [
        (position, other)
        for position, character in enumerate(cursor)
        for other in {ALPHABET[ALPHABET.index(character) ^ 1], ALPHABET[(ALPHABET.index(character) + 32) % 64], "."}
        if not refused(admin, f"/users?cursor={cursor[:position]}{other}{cursor[position + 1 :]}")
    ]
    assert accepted == []


def test_cursor_cut_anywhere_is_refused(admin: Caller, cursor: str) -> None:
    pieces = [cursor[:end] for end in range(1, len(cursor))] + [cursor[start:] for start in range(1, len(cursor))]
    assert [piece for piece in pieces if not refused(admin, f"/users?cursor={piece}")] == []


def test_cursor_in_another_spelling_is_refused(admin: Caller, cursor: str) -> None:
    for spoil in [
        lambda cursor: cursor + "A",
        lambda cursor: cursor + "AAAA",
        lambda cursor: "A" + cursor,
        lambda cursor: cursor + cursor,
        lambda cursor: cursor + "=",
        lambda cursor: cursor + "==",
        lambda cursor: cursor + "===",
        lambda cursor: cursor + "=" * (-len(cursor) % 4 or 4),
        lambda cursor: " " + cursor,
        lambda cursor: cursor + " ",
        lambda cursor: cursor[:4] + " " + cursor[4:],
        lambda cursor: cursor[:4] + "!" + cursor[4:],
        lambda cursor: cursor[:4] + "+" + cursor[5:],
        lambda cursor: cursor + "\n",
        lambda cursor: cursor + "\x00",
        lambda cursor: cursor + "é",
        lambda cursor: cursor.swapcase(),
        lambda cursor: cursor[::-1],
        lambda cursor: f'"{cursor}"',
        lambda cursor: quote(quote(f"{cursor}=")),
    ]:
        assert refused(admin, f"/users?cursor={quote(spoil(cursor), safe='')}")


JUNK = [
    *("a", "0", "-1", "null", "{}", "[]", "true", "=", "====", ".", "-", "_", "~", "%", "😀", "\ufffd", "../.."),
    "undefined",
]
JUNK += ["A" * length for length in (1, 2, 3, 4, 20, 21, 22, 23, 24, 32, 43, 64, 4_097)]
JUNK += [base64.urlsafe_b64encode(text).decode() for text in (b'[">",1]', b"1", b'{"id": 1}', b"o=1&p=2", b"\x00" * 16)]
JUNK += ["eyJhbGciOiJub25lIn0.eyJpZCI6MX0.", "MTA6MTIzNDU2", "1:1sAbCd:xyz"]


def test_junk_is_no_cursor(admin: Caller) -> None:
    for path in ["/users", "/posts"]:
        for junk in JUNK:
            assert refused(admin, f"{path}?cursor={quote(junk, safe='')}")


def test_huge_junk_is_refused_at_once(admin: Caller) -> None:
    for junk in ["A", "-", "é", "=", " "]:
        with quickly():
            response = send("GET", "/users", headers=admin.headers, QUERY_STRING=f"cursor={quote(junk * 100_000)}")
        error_of(response, 400, "INVALID_CURSOR")


LISTS = [
    *("/users?", "/users?order=desc", "/users?sort=name", "/users?role=user", "/users?status=active&role=user"),
    *("/orders?", "/orders?sort=created_at", "/payments?", "/posts?", "/posts?sort=created_at"),
    *("/users/{first}/orders?", "/users/{second}/orders?", "/posts/{post}/comments?"),
]


def test_cursor_of_one_list_is_refused_by_every_other(admin: Caller, people: None, other: Caller) -> None:
    first, second = admin.user, other.user
    for owner in (first, second):
        Order.objects.bulk_create(Order(user=owner, item="a", qty=1) for _ in range(3))
        posts = Post.objects.bulk_create(Post(user=owner, title="a") for _ in range(3))
    for caller in (admin, other):
        caller.post(f"/posts/{posts[0].pk}/comments", {"text": "a"})
        caller.post("/payments", {"amount": 1}, idempotency_key="k")
    lists = [address.format(first=first.pk, second=second.pk, post=posts[0].pk) for address in LISTS]
    cursors = {address: admin.get(f"{address}&limit=1&cursor=").meta["nextCursor"] for address in lists}
    assert all(cursors.values())
    for address in lists:
        fits = [made for made, cursor in cursors.items() if not refused(admin, f"{address}&cursor={cursor}")]
        assert fits == [address]


def test_cursor_goes_with_what_leaves_the_list_as_it_is(admin: Caller, cursor: str) -> None:
    for query in ["limit=1", "limit=100", "limit=1000", "sort=id", "order=asc", "fields=id", "envelope=true", "x=1"]:
        plain = admin.get(f"/users?cursor={cursor}").data
        found = admin.get(f"/users?cursor={cursor}&{query}").data
        assert [item["id"] for item in found] == [item["id"] for item in plain][: 1 if query == "limit=1" else None]


def test_cursor_shows_another_caller_only_what_it_may_see(
    admin: Caller, cursor: str, make_user, support: Caller
) -> None:
    late = with_key(make_user())
    assert [item["id"] for item in late.get(f"/users?cursor={cursor}").data] == [late.user.pk]
    assert late.get(f"/users?cursor={cursor}&role=user").code == "INVALID_CURSOR"
    assert len(support.get(f"/users?cursor={cursor}&limit=100").data) == len(admin.get("/users?limit=100").data) - 3
    Order.objects.bulk_create(Order(user=admin.user, item="a", qty=1) for _ in range(3))
    of_orders = admin.get("/orders?limit=1&cursor=").meta["nextCursor"]
    assert late.get(f"/orders?cursor={of_orders}").data == []
    of_one = admin.get(f"/users/{admin.user.pk}/orders?limit=1&cursor=").meta["nextCursor"]
    assert late.get(f"/users/{admin.user.pk}/orders?cursor={of_one}").status == 404


@pytest.mark.parametrize("sort", ["email", "name", "created_at"])
def test_cursor_holds_nothing_to_read(admin: Caller, people: None, sort: str) -> None:
    for limit in range(1, 12):
        cursor = admin.get(f"/users?sort={sort}&limit={limit}&cursor=").meta["nextCursor"]
        # Four given letters stand in Base64 by chance once in some thousand runs.
        assert not any(value in cursor.lower() for value in ("example", "readable", "value"))
        # Base64 has four ways to start reading it.
        for start in range(4):
            piece = cursor[start:]
            piece = piece[: len(piece) // 4 * 4]
            text = base64.urlsafe_b64decode(piece).lower()
            assert not any(value in text for value in (b"example", b"readable", b"value", b"2026", b"user"))
