"""The page of a user tells what belongs to the user: totals, the latest rows, and the way to all of them."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import admin
from django.test import Client
from django.utils.html import strip_tags

from config.admin.related import LATEST
from config.models import AuditEvent
from orders.models import Order
from tests.accounts.oauth.actors import register
from tests.admin.test_pages import create_rows
from tests.conftest import signed_in
from users.models import User

# In the order of the page.
NAMES = [
    *("orders", "posts", "comments", "payments", "API keys", "login sessions", "access tokens", "refresh tokens"),
    *("OAuth applications", "audit events", "use of versions", "outbox entries", "idempotency records"),
    "webhooks",
]


def fill(user: User, times: int = 1) -> None:
    create_rows(user, times)
    register(owner=user, redirect_uris="https://app.example.com/back")


def get_path(user: User) -> str:
    return f"/admin/users/user/{user.pk}/change/"


def get_related(client: Client, user: User) -> dict[str, Any]:
    answer = client.get(get_path(user))
    assert answer.status_code == 200
    return {str(each["cl"].opts.verbose_name_plural): each for each in answer.context["related"]}


def get_url(listed: dict[str, Any]) -> str:
    opts = listed["cl"].opts
    return f"/admin/{opts.app_label}/{opts.model_name}/{listed['cl'].get_query_string()}"


def test_each_model_with_rows_of_a_user_is_there(pages, chief):
    fill(chief)
    related = get_related(pages, chief)
    assert list(related) == NAMES
    assert 0 not in {each["count"] for each in related.values()}


def test_totals_and_latest_rows_are_those_of_the_user_alone(pages, make_user):
    user, other = make_user(), make_user()
    orders = [Order.objects.create(user=user, item=f"Tea {number}", qty=number) for number in range(1, LATEST + 3)]
    Order.objects.create(user=other, item="Coffee", qty=1)
    shown = get_related(pages, user)["orders"]
    assert (shown["count"], shown["has_more"]) == (len(orders), False)
    assert shown["columns"] == ["id", "item", "qty", "created at"]
    expected = [(f"/admin/orders/order/{each.pk}/change/", each.item) for each in reversed(orders[-LATEST:])]
    assert [(re.findall('href="(.*?)"', row[0])[0], strip_tags(row[1])) for row in shown["rows"]] == expected


def test_links_lead_to_pages_of_the_rows_and_to_lists_of_all(pages, chief, make_user):
    create_rows(chief, 2)
    create_rows(make_user(), 1)
    for name, each in get_related(pages, chief).items():
        answer = pages.get(get_url(each))
        assert answer.status_code == 200, name
        assert answer.context["cl"].result_count == each["count"], name
        for row in each["rows"]:
            assert pages.get(re.findall('href="(.*?)"', row[0])[0]).status_code == 200, name


def test_latest_rows_stand_in_the_order_of_their_list(pages, chief):
    create_rows(chief, LATEST + 2)
    for name, each in get_related(pages, chief).items():
        listed = [str(row.pk) for row in pages.get(get_url(each)).context["cl"].result_list][:LATEST]
        shown = [re.findall("/([^/]+)/change/", row[0])[0] for row in each["rows"]]
        assert shown == listed, name


def test_support_sees_no_section_of_keys_that_it_may_not_view(make_user):
    support, other = make_user("support"), make_user()
    create_rows(other, 1)
    client = signed_in(support)
    assert set(get_related(client, other)) == {*NAMES} - {"API keys"}
    assert set(get_related(client, support)) == {*NAMES}


def test_text_of_users_is_escaped(pages, chief):
    Order.objects.create(user=chief, item="<b>Tea</b>", qty=1)
    page = pages.get(get_path(chief)).content.decode()
    assert "&lt;b&gt;Tea" in page
    assert "<b>Tea" not in page
    assert "style=" not in page


def test_users_in_each_list_link_to_their_pages(pages, make_user):
    user = make_user()
    fill(user)
    AuditEvent.objects.exclude(user=user).delete()
    for model in [model for model, page in admin.site._registry.items() if getattr(page, "user_field", "")]:
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert f'<a href="{get_path(user)}">{user.name}</a>' in pages.get(path).content.decode(), path
