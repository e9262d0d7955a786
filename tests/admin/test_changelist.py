"""The search, filters, order and pages of the admin's change lists."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.services import create_api_key
from config.admin import changelist
from config.models import AuditEvent
from payments.models import Payment
from users.models import User

USERS = "/admin/users/user/"


def get_ids(pages: Client, path: str) -> list[int]:
    answer = pages.get(path)
    assert answer.status_code == 200, answer.headers
    return [row.pk for row in answer.context["cl"].result_list]


@pytest.mark.parametrize("term", ["{0.pk}", "Zoë", "zuse", "ZOE zu", "zoe@", "ZOE@EXAMPLE.com", " zoe@example.com "])
def test_search_matches_id_words_or_beginning_of_email(pages, make_user, term):
    user = make_user(name="Zoë Zuse", email="Zoe@example.com")
    make_user(name="Zacharias")
    assert get_ids(pages, f"{USERS}?q={term.format(user)}") == [user.pk]


def test_search_ignores_other_parts_of_a_text(pages, make_user):
    make_user(name="Zoë Zuse", email="zoe@example.com")
    for term in ["oë", "@example.com", "%", "9" * 30, "٣", "-1", "\U000584ed"]:
        assert get_ids(pages, f"{USERS}?q={term.replace('%', '%25')}") == []


@pytest.mark.parametrize(
    "query",
    ["p=9", "o=2", "role__exact=user", "status__exact=active&p=2", "created_at__gte=2026-01-01 00:00:00%2B00:00"],
)
def test_search_that_nobody_can_meet_has_empty_pages(pages, query):
    assert get_ids(pages, f"{USERS}?q=%F1%98%93%AD&{query}") == []


@pytest.mark.parametrize(
    ("name", "terms"), [("Odile Lefèvre", ("Lefèvre", "lefevre", "LEF")), ("Jörg Müller", ("Müller", "muller jorg"))]
)
def test_search_finds_what_the_api_finds_by_words(pages, make_user, name, terms):
    user = make_user(name=name)
    make_user(name="Somebody Else")
    for term in terms:
        assert get_ids(pages, f"{USERS}?q={term}") == [user.pk], term


def test_search_over_its_limit_says_more_than(pages, make_user, monkeypatch):
    monkeypatch.setattr(changelist, "MAX_COUNT", 2)
    for _ in range(4):
        make_user(name="Same")
    page = pages.get(f"{USERS}?q=Same")
    assert (page.context["cl"].result_count, page.context["cl"].paginator.has_more) == (2, True)
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
def test_totals_of_users_are_exact_without_a_count_query(pages, make_user, query, role, status):
    for number in range(9):
        make_user(["user", "support", "admin"][number % 3], status="inactive" if number % 2 else "active")
    filters = {"role": role, "status": status}
    expected = User.objects.filter(**{name: value for name, value in filters.items() if value}).order_by("-id")
    with CaptureQueriesContext(connection) as queries:
        answer = pages.get(f"{USERS}?{query}")
    assert [row.pk for row in answer.context["cl"].result_list] == list(expected.values_list("pk", flat=True))
    assert answer.context["cl"].result_count == len(expected)
    assert not any("count(" in query["sql"].lower() for query in queries)


def test_each_page_is_reached_and_a_number_after_the_last_shows_the_last(pages, make_user, monkeypatch):
    monkeypatch.setattr("config.admin.base.ServiceAdmin.list_per_page", 3)
    monkeypatch.setattr("config.api.listing.keyset.MAX_NEAR_OFFSET", 4)
    for _ in range(10):
        make_user()
    ids = list(User.objects.order_by("-id").values_list("pk", flat=True))
    assert [get_ids(pages, f"{USERS}?p={page}") for page in (1, 2, 3, 4)] == [ids[:3], ids[3:6], ids[6:9], ids[9:]]
    for number in ("5", "999999999999999999999"):
        assert get_ids(pages, f"{USERS}?p={number}") == ids[9:]
    for number in ("0", "-1", "x"):
        assert get_ids(pages, f"{USERS}?p={number}") == ids[:3]


def test_period_filter_shows_the_rows_since_then(pages, chief):
    now = timezone.now()
    for days in (40, 1, 0):
        Payment.objects.create(user=chief, amount="1", created_at=now - timedelta(days=days))
    since = (now - timedelta(days=7)).strftime("%Y-%m-%d 00:00:00%%2B00:00")
    expected = list(Payment.objects.order_by("-created_at").values_list("pk", flat=True)[:2])
    assert get_ids(pages, f"/admin/payments/payment/?created_at__gte={since}") == expected


def test_search_matches_prefix_of_a_key_or_a_whole_key(pages, chief):
    row, key = create_api_key(chief, name="K")
    create_api_key(chief, name="Other")
    for term in (row.prefix, key, row.prefix[:8]):
        assert get_ids(pages, f"/admin/accounts/apikey/?q={term}") == [row.pk]


def test_search_matches_event_by_name_or_request_id(pages, chief):
    event = AuditEvent.objects.create(event="token.reused", user=chief, request_id="abc")
    for query in ("q=token.reused", "q=abc", f"user__id__exact={chief.pk}&q=abc"):
        assert get_ids(pages, f"/admin/config/auditevent/?{query}") == [event.pk]


@pytest.mark.parametrize("query", ["name__regex=(", "user__password__startswith=a", "kind=oauth", "created_at__year=1"])
def test_unknown_filter_shows_an_error_message(pages, query):
    answer = pages.get(f"{USERS}?{query}", follow=True)
    assert re.search("is not valid", answer.content.decode())
