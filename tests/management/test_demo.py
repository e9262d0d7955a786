"""The demo data: the same rows every time, all of them valid for the API."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from datetime import datetime
from decimal import Decimal

import pytest
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from config.management.demo import rows
from config.management.demo.load import load_demo_data
from config.management.demo.names import CULTURES, build_person
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import User

TABLES = {
    User: ("name", "email", "role", "status", "password", "created_at", "updated_at", "row_version", "removed_at"),
    Order: ("user__email", "item", "qty", "created_at", "row_version"),
    Payment: ("user__email", "amount", "created_at", "row_version"),
    Post: ("user__email", "title", "body", "comments_count", "created_at", "updated_at", "row_version"),
    Comment: ("user__email", "post__title", "text", "created_at", "updated_at", "row_version"),
}
SCRIPTS = (
    "LATIN CYRILLIC GREEK ARABIC HEBREW DEVANAGARI BENGALI TAMIL THAI CJK HIRAGANA HANGUL GEORGIAN ARMENIAN ETHIOPIC"
)
VALUES_OF_A_MILLION = (1, 2, 77, 10_000, 123_456, 999_999, 1_000_003, 123_456_789)


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


class TestLoaded:
    @pytest.fixture(autouse=True)
    def _load(self, db: None) -> None:
        load_demo_data()

    def test_counts_are_those_of_a_small_set(self):
        assert User.objects.count() == 250
        assert Order.objects.count() == 750
        assert Payment.objects.count() == 375
        assert Post.objects.count() == len(rows.THREADS) == 36
        assert Comment.objects.count() == sum(len(thread.comments) for thread in rows.THREADS)

    def test_users_obey_the_rules_of_the_api(self):
        for user in User.objects.all():
            assert is_plain(user.name), user.name
            assert len(user.name) <= 200
            assert user.name == unicodedata.normalize("NFC", user.name)
            EmailValidator()(user.email)
            assert re.fullmatch(r"[a-z.-]+@example\.(com|org|net)", user.email)
            assert not user.has_usable_password()

    def test_emails_differ_and_leave_the_administrators_free(self):
        emails = {email.lower() for email in User.objects.values_list("email", flat=True)}
        assert len(emails) == 250
        assert "admin@example.com" not in emails
        assert {email.partition("@")[2] for email in emails} == set(rows.DOMAINS)

    def test_most_users_are_plain_and_active(self):
        roles = Counter(User.objects.values_list("role", flat=True))
        assert roles == {"user": 244, "support": 4, "admin": 2}
        inactive = User.objects.filter(status="inactive").count()
        assert 250 / 10 < inactive < 250 / 6

    def test_no_administrator_stands_in_for_one_who_can_log_in(self):
        assert not User.objects.administrators().exists()

    @pytest.mark.parametrize("script", SCRIPTS.split())
    def test_names_are_written_in(self, script: str):
        letters = "".join(User.objects.values_list("name", flat=True))
        assert any(unicodedata.name(letter, "").startswith(script) for letter in letters)

    def test_names_have_diacritics_and_an_emoji_somewhere(self):
        letters = set("".join(User.objects.values_list("name", flat=True)))
        assert letters >= set("éñłßåŞğçễ🌻")

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

    @pytest.mark.parametrize("model", [Order, Payment, Post, Comment])
    def test_nothing_is_older_than_its_user(self, model: type[Order | Payment | Post | Comment]):
        assert not model.objects.filter(created_at__lt=F("user__created_at")).exists()

    def test_no_comment_is_older_than_its_post_or_the_comment_before(self):
        for post in Post.objects.all():
            times = [post.created_at, *post.comments.order_by("id").values_list("created_at", flat=True)]
            assert times == sorted(times)

    @pytest.mark.parametrize("model", TABLES)
    def test_nothing_is_from_the_future(self, model: type[User | Order | Payment | Post | Comment]):
        times = list(model.objects.values_list("created_at", flat=True))
        if hasattr(model, "updated_at"):
            pairs = list(model.objects.values_list("created_at", "updated_at"))
            assert all(created <= updated for created, updated in pairs)
            times += [updated for _, updated in pairs]
        assert rows.START <= min(times) <= max(times) < min(rows.END, timezone.now())

    def test_users_come_over_two_years(self):
        times = list(User.objects.values_list("created_at", flat=True))
        assert (max(times) - min(times)).days > 720


def test_person_of_every_pattern_has_a_tidy_name():
    for number in range(1, 40_000):
        name, local_part, _ = build_person(number)
        assert name == " ".join(name.split())
        assert "--" not in name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*", local_part), local_part


def test_names_of_many_users_vary():
    assert len({build_person(number).name for number in range(100_000)}) > 30_000


def test_names_of_a_culture_are_distinct():
    for culture in CULTURES:
        written = [name.written for name in culture.given]
        assert len(set(written)) == len(written), culture.language
        assert len(set(culture.family)) == len(culture.family), culture.language


@pytest.mark.parametrize("number", VALUES_OF_A_MILLION)
def test_rows_of_any_number_are_the_same_twice(number: int):
    at = datetime.fromisoformat("2025-01-01T00:00:00Z")
    for make in (rows.build_user, rows.build_order, rows.build_post):
        assert make(number, at) == make(number, at)
    assert rows.build_amount(number) == rows.build_amount(number)
    assert rows.build_amount(number).as_tuple().exponent == -2


def test_shares_of_a_hundred_thousand_users():
    found = [rows.build_user(number, rows.START) for number in range(1, 100_001)]
    roles = Counter(user.role for user in found)
    assert roles["admin"] == pytest.approx(10, abs=3)
    assert roles["support"] == pytest.approx(1_000, rel=0.1)
    statuses = Counter(user.status for user in found)
    assert statuses["inactive"] == pytest.approx(12_500, rel=0.05)
