"""How the admin's lists are searched, filtered, ordered and leafed through."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.services import create_api_key
from config.admin import changelist
from config.models.resource import AuditEvent
from payments.models import Payment
from posts.models import Comment, Post
from tests.admin.test_pages import signed_in
from users.models import User

USERS = "/admin/users/user/"


@pytest.fixture
def chief(make_user: Any) -> User:
    return make_user("admin", name="Chief", email="chief@example.com")


@pytest.fixture
def pages(chief: User) -> Client:
    return signed_in(chief)


def shown(pages: Client, path: str) -> list[int]:
    answer = pages.get(path)
    assert answer.status_code == 200, answer.headers
    return [row.pk for row in answer.context["cl"].result_list]


@pytest.mark.parametrize("term", ["{0.pk}", "Zoë", "Zoë Z", "zoe@", "ZOE@EXAMPLE.com", " zoe@example.com "])
def test_user_is_found_by_id_or_the_beginning_of_name_or_email(pages, make_user, term):
    user = make_user(name="Zoë Zuse", email="Zoe@example.com")
    make_user(name="Zacharias")
    assert shown(pages, f"{USERS}?q={term.format(user)}") == [user.pk]


@pytest.mark.parametrize("term", ["oë", "@example.com", "%", "_oë", "9" * 30, "٣", "-1", "zoë"])
def test_search_looks_at_beginnings_alone(pages, make_user, term):
    make_user(name="Zoë Zuse", email="zoe@example.com")
    assert shown(pages, f"{USERS}?q={term.replace('%', '%25')}") == []


@pytest.mark.parametrize("term", ["chief@example.com", "C", "12345"])
def test_search_compares_as_indexes_do_and_no_further_than_its_bound(pages, term):
    with CaptureQueriesContext(connection) as seen:
        pages.get(f"{USERS}?q={term}")
    searches = [query["sql"] for query in seen if "UNION" in query["sql"]]
    assert searches
    for search in searches:
        assert not re.search(r"ILIKE|UPPER\(|LIKE '%|DISTINCT", search)
        assert search.count(f"LIMIT {changelist.MAX_MATCHES + 1}") >= search.count("UNION") + 1


def test_search_that_matches_much_tells_that_there_is_more(pages, make_user, monkeypatch):
    monkeypatch.setattr(changelist, "MAX_MATCHES", 2)
    for _ in range(4):
        make_user(name="Same")
    page = pages.get(f"{USERS}?q=Same")
    assert len(page.context["cl"].result_list) == 2
    assert "more than 2" in " ".join(page.content.decode().split())


def test_list_that_nothing_counts_tells_that_there_is_more(pages, chief, monkeypatch):
    monkeypatch.setattr(changelist, "MAX_COUNT", 2)
    post = Post.objects.create(user=chief, title="T")
    for _ in range(3):
        Comment.objects.create(user=chief, post=post, text="T")
    page = pages.get("/admin/posts/comment/")
    assert "more than 2" in " ".join(page.content.decode().split())


@pytest.mark.parametrize(
    ("query", "role", "status"),
    [
        ("", None, None),
        ("role__exact=support", "support", None),
        ("status__exact=inactive", None, "inactive"),
        ("role__exact=user&status__exact=inactive", "user", "inactive"),
    ],
)
def test_totals_of_users_are_exact_and_counted_by_nobody(pages, make_user, query, role, status):
    for number in range(9):
        make_user(["user", "support", "admin"][number % 3], status="inactive" if number % 2 else "active")
    wanted = {"role": role, "status": status}
    expected = User.objects.filter(**{name: value for name, value in wanted.items() if value}).order_by("id")
    with CaptureQueriesContext(connection) as seen:
        answer = pages.get(f"{USERS}?{query}")
    assert [row.pk for row in answer.context["cl"].result_list] == list(expected.values_list("pk", flat=True))
    assert answer.context["cl"].result_count == len(expected)
    assert not any("count(" in query["sql"].lower() for query in seen)


def test_every_page_is_reached_and_none_beyond(pages, make_user, monkeypatch):
    monkeypatch.setattr("config.admin.base.ServiceAdmin.list_per_page", 3)
    monkeypatch.setattr("config.api.listing.keyset.NEAR", 4)
    for _ in range(10):
        make_user()
    ids = list(User.objects.order_by("id").values_list("pk", flat=True))
    assert [shown(pages, f"{USERS}?p={page}") for page in (1, 2, 3, 4)] == [ids[:3], ids[3:6], ids[6:9], ids[9:]]
    for beyond in ("5", "999999999999999999999", "0", "-1"):
        assert shown(pages, f"{USERS}?p={beyond}") == ids[9:]
    assert shown(pages, f"{USERS}?p=x") == ids[:3]


@pytest.mark.parametrize(
    ("asked", "order"),
    [("", ("id",)), ("2", ("name", "id")), ("-2", ("-name", "-id")), ("4", ("id",)), ("99", ("id",))],
)
def test_order_is_that_of_an_indexed_column(pages, make_user, asked, order):
    for name in "bab":
        make_user(name=name)
    assert shown(pages, f"{USERS}?o={asked}") == list(User.objects.order_by(*order).values_list("pk", flat=True))


def test_newest_come_first_where_a_time_is_asked_for(pages, chief):
    now = timezone.now()
    for days in (0, 1, 40):
        Payment.objects.create(user=chief, amount="1", created_at=now - timedelta(days=days))
    since = (now - timedelta(days=7)).strftime("%Y-%m-%d 00:00:00%%2B00:00")
    expected = list(Payment.objects.order_by("-created_at").values_list("pk", flat=True)[:2])
    assert shown(pages, f"/admin/payments/payment/?created_at__gte={since}") == expected


def test_key_is_found_by_its_beginning_or_as_a_whole(pages, chief):
    row, key = create_api_key(chief, name="K")
    create_api_key(chief, name="Other")
    for term in (row.prefix, key, row.prefix[:8]):
        assert shown(pages, f"/admin/accounts/apikey/?q={term}") == [row.pk]


def test_event_is_found_by_its_name_and_by_the_id_of_its_request(pages, chief):
    event = AuditEvent.objects.create(event="token.reused", user=chief, request_id="abc")
    for query in ("q=token.reused", "q=abc", f"user__id__exact={chief.pk}&q=abc"):
        assert shown(pages, f"/admin/config/auditevent/?{query}") == [event.pk]


@pytest.mark.parametrize("query", ["name__regex=(", "user__password__startswith=a", "kind=oauth", "created_at__year=1"])
def test_filter_that_the_page_does_not_have_is_told(pages, query):
    answer = pages.get(f"{USERS}?{query}", follow=True)
    assert re.search("makes no sense", answer.content.decode())
