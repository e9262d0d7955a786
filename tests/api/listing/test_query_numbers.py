"""`page`, `limit` and `offset` in the grammar of contract section 3."""

from urllib.parse import quote

import pytest

from orders.models import Order
from tests.api.wire import quickly
from tests.conftest import Caller

TOTAL = 25
NOT_A_NUMBER = [
    *("", "abc", "٢", "²", "½", "１", "1a", "a1", "0x10", "1_0", "1,000", "NaN", "Infinity", "inf", "null", "true"),
]
NOT_A_NUMBER += ["--1", "1-1", "[]", "1 2", "😀", "%", "'", "e5", "\ufffd"]
REFUSED_NUMBER = ["0", "00", "-0", "-1", "1.5", "1.0", "0.5", ".5", "1e1", "1E2", "1e+1", "1e-1", "1e400", "-1e400"]
REFUSED_NUMBER += ["-" + "9" * 30, "0." + "0" * 30 + "1"]
MAX_POSITION = 2**63 - 1
FAR = [10**6, 2**31, 10**18, MAX_POSITION]
BEYOND = [str(2**63), str(2**64), *("1" + "0" * zeros for zeros in (19, 20, 30, 4_299, 4_300, 6_000))]


@pytest.fixture
def orders(user: Caller) -> list[int]:
    made = Order.objects.bulk_create(Order(user=user.user, item=f"i{number}", qty=1) for number in range(TOTAL))
    return [order.pk for order in made]


@pytest.mark.parametrize("name", ["page", "limit", "offset"])
def test_what_is_not_a_number_counts_as_absent(user: Caller, orders: list[int], name: str) -> None:
    for value in NOT_A_NUMBER:
        answer = user.get(f"/orders?{name}={quote(value)}")
        assert answer.status == 200
        assert answer.meta == {"page": 1, "limit": 20, "total": TOTAL, "totalPages": 2}
        assert [item["id"] for item in answer.data] == orders[:20]


@pytest.mark.parametrize("name", ["page", "limit", "offset"])
def test_number_below_its_least_or_not_plainly_whole_is_refused(user: Caller, orders: list[int], name: str) -> None:
    for value in REFUSED_NUMBER:
        if name == "offset" and value in {"0", "00"}:
            assert user.get(f"/orders?offset={value}").meta["page"] == 1
            continue
        answer = user.get(f"/orders?{name}={quote(value)}")
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {name})


def test_limit_above_its_maximum_is_the_maximum_and_says_so(user: Caller, orders: list[int]) -> None:
    for limit in [101, 1000, 10**9, 2**63, 10**18, 10**30]:
        answer = user.get(f"/orders?limit={limit}")
        assert answer.meta == {"page": 1, "limit": 100, "total": TOTAL, "totalPages": 1}
        assert [item["id"] for item in answer.data] == orders
        assert len(user.get(f"/orders?limit={limit}&cursor=").data) == TOTAL


def test_limit_within_its_maximum_is_used(user: Caller, orders: list[int]) -> None:
    for limit in [1, 7, 24, 25, 26, 99, 100]:
        answer = user.get(f"/orders?limit={limit}")
        assert answer.meta == {"page": 1, "limit": limit, "total": TOTAL, "totalPages": -(-TOTAL // limit)}
        assert [item["id"] for item in answer.data] == orders[:limit]


def test_page_past_the_end_is_empty_with_right_totals(user: Caller, orders: list[int]) -> None:
    for page in [3, 4, *FAR]:
        answer = user.get(f"/orders?page={page}")
        assert (answer.status, answer.data) == (200, [])
        assert answer.meta == {"page": page, "limit": 20, "total": TOTAL, "totalPages": 2}
        assert "next" not in answer.body["_links"]
        assert user.get(answer.body["_links"]["prev"]["href"]).status == 200


def test_number_of_a_page_stays_within_64_bits(user: Caller, orders: list[int]) -> None:
    assert user.get(f"/orders?offset={2**63 - 1}&limit=1").meta["page"] == 2**63 - 1


def test_offset_skips_that_many(user: Caller, orders: list[int]) -> None:
    for offset, limit, page in [(0, 10, 1), (1, 10, 1), (9, 10, 1), (10, 10, 2), (15, 10, 2), (24, 1, 25), (24, 5, 5)]:
        answer = user.get(f"/orders?offset={offset}&limit={limit}")
        assert [item["id"] for item in answer.data] == orders[offset : offset + limit]
        assert answer.meta["page"] == page


def test_two_ways_through_a_list_are_refused_by_name(user: Caller, orders: list[int]) -> None:
    for query, given in [
        ("page=1&offset=0", {"page", "offset"}),
        ("page=1&cursor=", {"page", "cursor"}),
        ("offset=0&cursor=", {"offset", "cursor"}),
        ("cursor=&page=abc", {"page", "cursor"}),
        ("page=&offset=", {"page", "offset"}),
        ("page=1&offset=0&cursor=", {"page", "offset", "cursor"}),
        ("page=1&cursor=junk", {"page", "cursor"}),
    ]:
        answer = user.get(f"/orders?{query}")
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", given)


@pytest.mark.parametrize("version", [1, 2])
def test_number_beyond_64_bits_is_refused_naming_the_bound(user: Caller, orders: list[int], version: int) -> None:
    for name in ["page", "offset"]:
        for number in BEYOND:
            answer = user.get(f"/api/v{version}/orders?{name}={number}")
            assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
            assert answer.error["details"] == [{"field": name, "message": "Must be at most 9223372036854775807."}]


def test_leading_zeros_leave_a_number_as_it_is(user: Caller, orders: list[int]) -> None:
    for zeros in [1, 30, 6_000]:
        assert user.get(f"/orders?page={'0' * zeros}2").meta["page"] == 2
        assert user.get(f"/orders?limit={'0' * zeros}2").meta["limit"] == 2
        assert user.get(f"/orders?offset={'0' * zeros}").meta["page"] == 1
        assert user.get(f"/orders?page={'0' * zeros}").fields == {"page"}


@pytest.mark.parametrize("name", ["page", "limit", "offset"])
def test_number_of_thousands_of_digits_is_answered_at_once(user: Caller, name: str) -> None:
    for digits in [41, 4_000, 4_301, 30_000]:
        for sign in ["", "-", "0.", "1e"]:
            with quickly():
                answer = user.get(f"/orders?{name}={sign}{'1' * digits}")
            if name == "limit" and not sign:
                assert (answer.status, answer.meta["limit"]) == (200, 100)
            else:
                assert (answer.status, answer.fields) == (400, {name})
