"""Search by `q`: what it finds, in every order and under filters, what is refused, and the words that triggers keep."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from django.apps import apps
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from config.api.listing import bounded
from config.api.listing.filters import Ordering
from config.postgresql import words
from orders.models import Order
from tests.api.listing.test_filters import address, walk
from tests.conftest import with_bearer_of
from tests.contract.world import rolled_back
from users import services
from users.models import User
from users.views import UserViewSet

pytestmark = pytest.mark.django_db

TOO_LONG = "Words can have at most 64 characters (16 in scripts without spaces). Send only the start of a longer word."

NAMES = ("Anna Meyer", "Änna O'Brien", "Bert Meyerhof", "ANNE-Marie", "王小明", "東京タワー Tower", "ตากใบ", "Straße 7")


class People:
    def __init__(self) -> None:
        for number in range(48):
            role = ("admin", "support", "user", "user")[number % 4]
            services.create(
                name=NAMES[number % 8], email=f"p{number % 5}.x{number}@example.com", role=role, password=None
            )
        self.rows = list(User.objects.order_by("id").values())
        self.callers = {who: with_bearer_of(User.objects.filter(role=who)[0]) for who in ("admin", "user")}

    def expect(self, q: str, filters: Mapping[str, str], ordering: Ordering) -> list[int]:
        """The ids of a list, found without a database."""
        found = [
            row
            for row in self.rows
            if all(row[name] in value.split(",") for name, value in filters.items())
            and all(has_word(f"{row['name']} {row['email']}", word) for word in q.split())
        ]
        found.sort(key=lambda row: (row[ordering.field], row["id"]), reverse=ordering.descending)
        return [row["id"] for row in found]


def has_word(text: str, beginning: str) -> bool:
    folded = fold(text)
    runs = "".join(char if char.isalnum() or unicodedata.category(char).startswith("M") else " " for char in folded)
    if ord(beginning[0]) > 0xE00:
        return fold(beginning) in runs
    return any(word.startswith(fold(beginning)) for word in runs.split())


def fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFKC", "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f")).casefold()


@pytest.fixture(scope="module")
def people(django_db_setup: None, django_db_blocker: Any) -> Any:
    with django_db_blocker.unblock(), rolled_back():
        yield People()


# Which words count as rare: all, those that two rows have alone or two words together, or those of two rows.
COMMONNESS = ("rare", "rare together", "common")


@contextmanager
def words_made(commonness: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if commonness != "rare":
            make_common(patch, most=7, probed=8 if commonness == "rare together" else 2)
        yield


@pytest.fixture(params=COMMONNESS)
def commonness(request: pytest.FixtureRequest) -> Iterator[str]:
    with words_made(request.param):
        yield request.param


def make_common(monkeypatch: pytest.MonkeyPatch, *, most: int, probed: int = 2) -> None:
    monkeypatch.setattr(words, "MAX_ROWS", 2)
    monkeypatch.setattr(words, "MAX_PROBED_OF_ONE", probed)
    monkeypatch.setattr(bounded, "MAX_LOOKED_AT", most)


PIECES = [
    *("anna", "Änna", "an", "a", "MEYER", "meyerh", "o", "brien", "p1", "x", "x7", "example", "com", "小", "王小"),
    "タ",
]
PIECES += ["東京", "京タワ", "tower", "ใบ", "strasse", "straße", "7", "marie", "nobody", "nna"]


def test_search_finds_what_a_look_at_every_row_finds(people: People) -> None:
    sorts = st.tuples(st.sampled_from(UserViewSet.sortable), st.booleans()).map(lambda pair: Ordering(*pair))
    filters = st.sampled_from(
        [{}, {}, {"role": "user"}, {"role": "admin,support"}, {"role": "user", "status": "active"}]
    )
    words_of_a_search = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3)

    @settings(suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
    @given(st.sampled_from(COMMONNESS), words_of_a_search, filters, sorts, st.integers(1, 9))
    def check(commonness: str, pieces: list[str], chosen: dict[str, str], ordering: Ordering, limit: int) -> None:
        q = " ".join(pieces)
        query = {**chosen, "q": q, "sort": ordering.field, "order": "desc" if ordering.descending else "asc"}
        expected = people.expect(q, chosen, ordering)
        caller = people.callers["admin"]
        with words_made(commonness):
            assert walk(caller, "users", {**query, "limit": limit}) == expected
            page = caller.get(address("users", {**query, "limit": limit, "page": 1}))
        assert page.status == 200, page
        if commonness == "rare":
            assert (page.meta["total"], [row["id"] for row in page.data]) == (len(expected), expected[:limit])
        elif page.meta["total"] is None:
            least = page.meta["totalAtLeast"]
            assert [row["id"] for row in page.data] == expected[:least][:limit]
        else:
            assert page.meta["total"] == len(expected)

    check()


def test_page_of_a_common_word_may_be_short_and_the_next_one_goes_on(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_common(monkeypatch, most=4)
    caller = people.callers["admin"]
    first = caller.get("/api/v2/users?q=bert&limit=5")
    assert (len(first.data), first.meta["hasMore"]) == (1, True)
    offset = caller.get("/api/v2/users?q=bert&page=1")
    assert offset.meta == {"page": 1, "limit": 20, "total": None, "totalPages": None, "totalAtLeast": 1}
    assert set(offset.body["_links"]) == {"self", "first"}
    never = caller.get("/api/v2/users?q=bert%20anna&limit=5")
    assert (never.data, never.meta["hasMore"]) == ([], True)
    assert walk(caller, "users", {"q": "bert anna", "limit": 5}) == []


def test_caller_finds_what_it_may_see(people: People, commonness: str) -> None:
    caller = people.callers["user"]
    assert [row["id"] for row in caller.get("/api/v2/users?q=bert").data] == [people.rows[2]["id"]]
    assert caller.get("/api/v2/users?q=anna").data == []


def test_search_for_nothing_or_too_much_is_refused(people: People) -> None:
    for q, message in [
        ("", "Must not be empty."),
        ("%20", "Must contain a letter or a digit."),
        ("%27-%2C.%25_", "Must contain a letter or a digit."),
        ("%00", "Must not contain NUL or other control characters."),
        ("a" * 201, "Must be at most 200 characters."),
        ("1 2 3 4 5 6 7 8 9".replace(" ", "%20"), "Must have at most 8 different words."),
        (
            "a" * 65,
            TOO_LONG,
        ),
        (
            "%E5%B0%8F" * 17,
            TOO_LONG,
        ),
        ("a&q=b", "Must not be repeated."),
    ]:
        answer = people.callers["admin"].get(f"/api/v2/users?q={q}")
        assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
        assert answer.error["details"] == [{"field": "q", "message": message}]


def test_first_version_and_lists_without_words_have_no_search(people: People) -> None:
    caller = people.callers["admin"]
    assert caller.get("/api/v1/users?q=bert").meta["total"] == len(people.rows)
    for name in ("payments", "api-keys", f"users/{people.rows[0]['id']}/payments"):
        answer = caller.get(f"/api/v2/{name}?q=bert")
        assert (answer.status, answer.fields) == (400, {"q"})


def test_cursor_belongs_to_its_search(people: People, commonness: str) -> None:
    caller = people.callers["admin"]
    cursor = caller.get("/api/v2/users?q=example&limit=2").meta["nextCursor"]
    assert caller.get(f"/api/v2/users?q=example&limit=5&cursor={cursor}").status == 200
    for other in ("q=anna&", "", "q=example&role=user&"):
        assert caller.get(f"/api/v2/users?{other}limit=2&cursor={cursor}").code == "INVALID_CURSOR"


def test_search_goes_with_what_the_list_goes_with(people: People, commonness: str) -> None:
    caller = people.callers["admin"]
    for sort, order in product(UserViewSet.sortable, ("asc", "desc")):
        assert caller.get(f"/api/v2/users?q=anna&sort={sort}&order={order}&role=user").status == 200
    refused = caller.get("/api/v2/users?q=anna&created_at[gt]=2026-01-01T00:00:00Z&sort=id")
    assert (refused.status, refused.fields) == (400, {"created_at[gt]"})
    ids = ",".join(str(row["id"]) for row in people.rows[:9])
    assert len(walk(caller, "users", {"q": "anna", "id": ids, "sort": "name"})) == 3
    beyond = caller.get("/api/v2/users?q=anna&page=501")
    assert (beyond.status, beyond.fields) == (400, {"page"})


hostile = st.text(
    st.one_of(
        st.sampled_from("%_*\\'\"`[](){}<>|&!:;,.?/-+ \u200b\u0301\u3000\ufffd\U0010ffff\U0001f600İßΣς"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=220,
)


def test_any_text_is_searched_or_refused(people: People) -> None:
    @settings(suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
    @given(st.sampled_from(COMMONNESS), hostile, st.sampled_from(UserViewSet.sortable))
    def check(commonness: str, text: str, sort: str) -> None:
        with words_made(commonness):
            answer = people.callers["admin"].get(address("users", {"q": text, "sort": sort}))
        assert answer.status == 200 or (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"q"})

    check()


def test_orders_are_searched_among_those_of_the_caller_and_of_several_users(people: People, commonness: str) -> None:
    owners = [row["id"] for row in people.rows[2:6]]
    items = ("Café table", "Table", "Chair")
    made = [
        Order.objects.create(user_id=owners[number % 4], item=items[number % 3], qty=number + 1) for number in range(24)
    ]
    caller = people.callers["admin"]
    for sort, order in product(("id", "item", "qty"), ("asc", "desc")):
        key = {"id": "pk"}.get(sort, sort)
        ordered = sorted(made, key=lambda row: (getattr(row, key), row.pk), reverse=order == "desc")
        query = {"q": "tabl cafe", "sort": sort, "order": order, "limit": 3}
        cafe = [row for row in ordered if row.item == "Café table"]
        assert walk(caller, "orders", query) == [row.pk for row in cafe]
        some = walk(caller, "orders", {**query, "user_id": f"{owners[0]},{owners[1]}"})
        assert some == [row.pk for row in cafe if row.user_id in owners[:2]]
        own = walk(people.callers["user"], "orders", query)
        assert own == [row.pk for row in cafe if row.user_id == owners[0]]
        below = walk(caller, f"users/{owners[3]}/orders", query)
        assert below == [row.pk for row in cafe if row.user_id == owners[3]]
    assert caller.get(f"/api/v2/users/{owners[3]}/orders?q=nowhere").data == []
    assert caller.get(f"/api/v2/users/{2**40}/orders?q=cafe").status == 404


# --- The words


UserWord = apps.get_model("users", "UserWord")


def fetch_words(pk: int) -> set[str]:
    return set(UserWord.objects.filter(row_id=pk).values_list("word", flat=True))


def test_words_follow_their_row_through_every_door() -> None:
    user = services.create(name="Zoë Ångström", email="z@example.org", password=None)
    assert fetch_words(user.pk) == {"zoe", "angstrom", "z", "example", "org"}
    User.objects.filter(pk=user.pk).update(name="李小龙", row_version=7)
    assert fetch_words(user.pk) == {"李小龙", "小龙", "龙", "z", "example", "org"}
    User.objects.filter(pk=user.pk).update(role="support")
    assert "龙" in fetch_words(user.pk)
    other = User.objects.bulk_create([User(name="A B", email="c@d.e"), User(name="F", email="g@h.i")])
    assert fetch_words(other[1].pk) == {"f", "g", "h", "i"}
    services.remove(user)
    assert fetch_words(user.pk) == set()
    User.objects.filter(pk=other[0].pk).delete()
    assert fetch_words(other[0].pk) == set()
