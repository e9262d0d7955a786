"""A page of a list: its `meta`, its links in body and header, and the list without its envelope."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from orders.models import Order
from tests.api.wire import query_of, send
from tests.conftest import Answer, Caller

TOTAL = 5


@pytest.fixture
def orders(user: Caller) -> list[int]:
    made = Order.objects.bulk_create(Order(user=user.user, item=f"i{number}", qty=1) for number in range(TOTAL))
    return [order.pk for order in made]


def hrefs(links: dict[str, Any]) -> dict[str, str]:
    assert all(set(link) == {"href"} for link in links.values())
    return {rel: link["href"] for rel, link in links.items()}


def header_links(response: Any) -> dict[str, str]:
    parts = [part.strip() for part in response.headers["Link"].split(", <")]
    found = [re.fullmatch(r'<?([^<>]+)>; rel="([a-z-]+)"', part) for part in parts]
    assert all(found), response.headers["Link"]
    links = {match[2]: match[1] for match in found if match}
    assert len(links) == len(parts)
    notice = {"deprecation", "sunset", "successor-version"}
    return {rel: href for rel, href in links.items() if rel not in notice}


def ids(answer: Answer) -> list[int]:
    return [item["id"] for item in answer.data]


@pytest.mark.parametrize(
    ("query", "page", "changes"),
    [
        ("", 1, {"first": {"page": "1"}, "next": {"page": "2"}, "last": {"page": "3"}}),
        ("page=1", 1, {"first": {"page": "1"}, "next": {"page": "2"}, "last": {"page": "3"}}),
        ("page=2", 2, {"first": {"page": "1"}, "prev": {"page": "1"}, "next": {"page": "3"}, "last": {"page": "3"}}),
        ("page=3", 3, {"first": {"page": "1"}, "prev": {"page": "2"}, "last": {"page": "3"}}),
        ("offset=0", 1, {"first": {"offset": "0"}, "next": {"offset": "2"}, "last": {"offset": "4"}}),
        (
            "offset=2",
            2,
            {"first": {"offset": "0"}, "prev": {"offset": "0"}, "next": {"offset": "4"}, "last": {"offset": "4"}},
        ),
        ("offset=4", 3, {"first": {"offset": "0"}, "prev": {"offset": "2"}, "last": {"offset": "4"}}),
    ],
)
def test_offset_page_has_exactly_its_meta_and_links(
    user: Caller, orders: list[int], query: str, page: int, changes: dict[str, dict[str, str]]
) -> None:
    address = f"/orders?limit=2&sort=id{'&' + query if query else ''}"
    answer = user.get(address)
    assert set(answer.body) == {"success", "data", "meta", "_links"}
    assert answer.body["success"] is True
    assert answer.meta == {"page": page, "limit": 2, "total": TOTAL, "totalPages": 3}
    assert ids(answer) == orders[2 * page - 2 : 2 * page]
    assert all("_links" not in item for item in answer.data)

    links = hrefs(answer.body["_links"])
    assert {rel: query_of(href) for rel, href in links.items()} == {
        "self": query_of(address),
        **{rel: {"limit": "2", "sort": "id", **change} for rel, change in changes.items()},
    }
    assert {urlsplit(href).path for href in links.values()} == {"/orders"}
    assert header_links(answer.response) == links


def test_cursor_pages_have_exactly_their_meta_and_links(user: Caller, orders: list[int]) -> None:
    first = user.get("/orders?limit=2&cursor=")
    second = user.get(hrefs(first.body["_links"])["next"])
    third = user.get(hrefs(second.body["_links"])["next"])
    back = user.get(hrefs(third.body["_links"])["prev"])
    assert [ids(page) for page in (first, second, third, back)] == [orders[:2], orders[2:4], orders[4:], orders[2:4]]
    assert [set(page.body["_links"]) for page in (first, second, third, back)] == [
        {"self", "first", "next"},
        {"self", "first", "prev", "next"},
        {"self", "first", "prev"},
        {"self", "first", "prev", "next"},
    ]
    for page, more in ((first, True), (second, True), (third, False), (back, True)):
        links = hrefs(page.body["_links"])
        assert page.meta == {
            "nextCursor": query_of(links["next"])["cursor"] if "next" in links else None,
            "prevCursor": query_of(links["prev"])["cursor"] if "prev" in links else None,
            "hasMore": more,
        }
        assert query_of(links["first"]) == {"limit": "2", "cursor": ""}
        assert header_links(page.response) == links


@pytest.mark.parametrize("query", ["", "page=1", "offset=0", "limit=1", "page=7", "offset=3"])
def test_empty_list_by_offset(user: Caller, query: str) -> None:
    answer = user.get(f"/orders?{query}")
    assert (answer.status, answer.data) == (200, [])
    assert (answer.meta["total"], answer.meta["totalPages"]) == (0, 0)
    assert "next" not in answer.body["_links"]


def test_empty_list_by_cursor(user: Caller) -> None:
    answer = user.get("/orders?cursor=")
    assert answer.data == []
    assert answer.meta == {"nextCursor": None, "prevCursor": None, "hasMore": False}
    assert set(answer.body["_links"]) <= {"self", "first"}


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1"])
@pytest.mark.parametrize("mode", ["page=2", "offset=2", "cursor="])
def test_links_keep_prefix_and_every_parameter_but_the_key(
    user: Caller, orders: list[int], prefix: str, mode: str
) -> None:
    kept = {
        "limit": "1",
        "order": "desc",
        "fields": "id,item",
        "x": 'ü &=#+"<>,;/?',
        "": "",
        "empty": "",
        "api_key_x": "1",
    }
    encoded = "limit=1&order=desc&fields=id%2Citem&x=%C3%BC%20%26%3D%23%2B%22%3C%3E%2C%3B%2F%3F&=&empty&api_key_x=1"
    key = user.headers["X-API-Key"]
    answer = Caller().get(f"{prefix}/orders?api_key={key}&{encoded}&{mode}")
    links = hrefs(answer.body["_links"])
    paging = dict([mode.split("=")])
    for rel, href in links.items():
        found = query_of(href)
        assert urlsplit(href).path == f"{prefix}/orders"
        assert {name: value for name, value in found.items() if name not in paging} == kept
        assert set(found) == {*kept, *paging}
        if rel == "self":
            assert found == {**kept, **paging}
        assert user.get(href).status == 200
    assert header_links(answer.response) == links
    assert key not in answer.response.content.decode()
    assert all(key not in value for value in answer.headers.values())


@pytest.mark.parametrize("query", ["limit=2", "limit=2&page=2", "limit=2&offset=1", "page=9", "limit=2&fields=item"])
def test_list_without_envelope_is_bare_with_its_total_and_links_in_headers(
    user: Caller, orders: list[int], query: str
) -> None:
    wrapped = user.get(f"/orders?{query}&envelope=true")
    bare = user.get(f"/orders?{query}&envelope=false")
    assert bare.body == wrapped.data
    assert bare.headers["X-Total-Count"] == str(TOTAL)
    expected = {rel: query_of(href) | {"envelope": "false"} for rel, href in hrefs(wrapped.body["_links"]).items()}
    assert {rel: query_of(href) for rel, href in header_links(bare.response).items()} == expected


def test_cursor_page_without_envelope_has_its_links_and_no_total(user: Caller, orders: list[int]) -> None:
    bare = user.get("/orders?limit=2&cursor=&envelope=false")
    assert [item["id"] for item in bare.body] == orders[:2]
    assert "X-Total-Count" not in bare.headers
    following = user.get(header_links(bare.response)["next"])
    assert [item["id"] for item in following.body] == orders[2:4]


def test_single_resource_without_envelope_is_bare(user: Caller, orders: list[int]) -> None:
    address = f"/orders/{orders[0]}"
    wrapped = user.get(f"{address}?envelope=true")
    assert wrapped.body == {"success": True, "data": user.get(f"{address}?envelope=false").body}
    assert set(wrapped.data["_links"]) == {"self", "user"}


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.api+json", "application/problem+json"])
def test_list_is_plain_json_of_utf8(user: Caller, accept: str) -> None:
    Order.objects.create(user=user.user, item="漢😀", qty=1)
    response = send("GET", "/orders", headers={**user.headers, "Accept": accept})
    assert response.headers["Content-Type"] == "application/json"
    assert json.loads(response.content.decode("utf-8"))["data"][0]["item"] == "漢😀"
