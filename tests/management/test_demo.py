"""The demo data: the same rows every time, all of them valid for the API."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from config.management.demo import rows
from config.management.demo.load import load_demo_data
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.contract.world import rolled_back
from users.models import User

TABLES = {
    User: ("name", "email", "role", "status", "password", "created_at", "updated_at", "row_version", "removed_at"),
    Order: ("user__email", "item", "qty", "created_at", "row_version"),
    Payment: ("user__email", "amount", "created_at", "row_version"),
    Post: ("user__email", "title", "body", "comments_count", "created_at", "updated_at", "row_version"),
    Comment: ("user__email", "post__title", "text", "created_at", "updated_at", "row_version"),
}


def fetch_rows() -> dict[str, list[tuple[object, ...]]]:
    """Everything there is but the ids, in the order of the ids."""
    return {
        model.__name__: list(model._base_manager.order_by("id").values_list(*columns))
        for model, columns in TABLES.items()
    }


def is_plain(text: str, allowed: str = "") -> bool:
    """Whether a text is one that the API takes: no control characters, no surrogates, not blank."""
    return bool(text.strip()) and not any(
        unicodedata.category(letter) in {"Cc", "Cs"} for letter in text if letter not in allowed
    )


def load_and_roll_back() -> dict[str, list[tuple[object, ...]]]:
    """What load_demo_data() puts into an empty database, which is empty again afterwards."""
    with transaction.atomic():
        load_demo_data()
        found = fetch_rows()
        transaction.set_rollback(True)
    return found


@pytest.mark.django_db
def test_loading_into_two_empty_databases_gives_the_same_rows():
    first = load_and_roll_back()
    assert fetch_rows() == {name: [] for name in first}
    assert load_and_roll_back() == first


@pytest.fixture(scope="class")
def loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), rolled_back():
        load_demo_data()
        yield


@pytest.mark.usefixtures("loaded", "db")
class TestLoaded:
    def test_counts_are_those_of_a_small_set(self):
        assert User.objects.count() == 250
        assert Order.objects.count() == 750
        assert Payment.objects.count() == 375
        assert Post.objects.count() == len(rows.THREADS) == 36
        assert Comment.objects.count() == sum(len(thread.comments) for thread in rows.THREADS)

    def test_charts_of_the_dashboard_have_rows_on_the_first_day(self):
        now = timezone.now()
        for model in (User, Order, Payment):
            assert model._default_manager.filter(created_at__gt=now - timedelta(days=30)).count() > 5
            assert not model._default_manager.filter(created_at__gt=now).exists()

    def test_users_obey_the_rules_of_the_api(self):
        for user in User.objects.all():
            assert is_plain(user.name), user.name
            assert len(user.name) <= 200
            assert user.name == unicodedata.normalize("NFC", user.name)
            EmailValidator()(user.email)
            assert re.fullmatch(r"[a-z.-]+@example\.(com|org|net)", user.email)
            assert not user.has_usable_password()

    def test_orders_obey_the_rules_of_the_api(self):
        for item, qty in Order.objects.values_list("item", "qty"):
            assert is_plain(item), item
            assert len(item) <= 200
            assert 1 <= qty <= 1_000_000

    def test_amounts_have_two_places_at_most(self):
        for amount in Payment.objects.values_list("amount", flat=True):
            assert Decimal("0.01") <= amount <= Decimal("9999999999.99")
            assert amount == amount.quantize(Decimal("0.01"))

    def test_posts_and_comments_obey_the_rules_of_the_api(self):
        for title, body in Post.objects.values_list("title", "body"):
            assert is_plain(title), title
            assert len(title) <= 200
            assert is_plain(body, allowed="\t\r\n"), body
            assert len(body) <= 20_000
        for text in Comment.objects.values_list("text", flat=True):
            assert is_plain(text, allowed="\t\r\n"), text
            assert len(text) <= 5_000

    def test_posts_count_their_comments(self):
        counted = Post.objects.annotate(there=Count("comments"))
        assert not counted.exclude(there=F("comments_count")).exists()
        assert counted.filter(comments_count__gt=20).exists()
