"""manage.py seed: adds the requested rows after the existing ones, all or none."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Count

from config.management.commands import seed
from config.management.demo import rows
from config.management.demo.load import load_demo_data
from config.models import AuditEvent
from orders.models import Order
from posts.models import Comment, Post
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def run(**options: Any) -> str:
    output = StringIO()
    call_command("seed", stdout=output, **options)
    return output.getvalue()


def is_empty() -> bool:
    return not any(model._base_manager.exists() for model in (User, Order, Post, Comment))


def test_seed_adds_what_it_is_told_and_says_so():
    output = run(users=30, orders_per_user=3, posts_per_user=2)

    assert re.fullmatch(r"Added 30 users, 90 orders and 60 posts in [0-9]+\.[0-9] s\.\n", output)
    assert User.objects.count() == 30
    assert set(User.objects.annotate(each=Count("orders")).values_list("each", flat=True)) == {3}
    assert set(User.objects.annotate(each=Count("posts")).values_list("each", flat=True)) == {2}
    assert set(Post.objects.values_list("comments_count", flat=True)) == {0}
    facts = AuditEvent.objects.values_list("event", "user", "facts")
    assert list(facts) == [("user.created", None, {"count": 30, "credential": "command"})]


def test_seed_in_several_parts_adds_every_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seed, "USERS_PER_BATCH", 8)
    run(users=20, orders_per_user=1)
    assert (User.objects.count(), Order.objects.count()) == (20, 20)
    times = list(User.objects.order_by("id").values_list("created_at", flat=True))
    assert times == sorted(times)


def test_seed_after_demo_data_and_another_seed_appends():
    load_demo_data()
    run(users=400, orders_per_user=1)
    first = list(User.objects.order_by("id").values_list("id", "email", "name"))
    run(users=400)

    everybody = list(User.objects.order_by("id").values_list("id", "email", "name"))
    assert everybody[: len(first)] == first
    assert len({email.lower() for _, email, _ in everybody}) == 250 + 400 + 400


def test_seed_gives_users_that_obey_the_rules_and_cannot_log_in():
    run(users=200)
    for user in User.objects.all():
        user.clean_fields()
        assert user.email.endswith(rows.DOMAINS)
        assert not user.has_usable_password()
    assert not User.objects.administrators().exists()


def test_failure_in_the_middle_adds_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seed, "USERS_PER_BATCH", 10)
    monkeypatch.setattr(rows, "QUANTITIES", [1] * 20 + [0])

    with pytest.raises(CommandError, match=r"\AThe database failed: .*orders_qty_range[^\n]*\Z"):
        run(users=50, orders_per_user=1)

    assert is_empty()


def test_wrong_number_is_refused():
    for value in ["-1", "1.5", "1e3", "", "ten", "٣", " 3", "9" * 5000]:
        with pytest.raises(CommandError, match="argument --users: a whole number from 0 to 999999999"):
            run(users=value)
    assert is_empty()


@pytest.mark.django_db(transaction=True)
def test_large_seed_leaves_the_indexes_as_they_were(monkeypatch):
    tables = ["users_user", "orders_order", "posts_post"]

    def indexes():
        with connection.cursor() as cursor:
            cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = ANY(%s) ORDER BY indexname", [tables])
            return cursor.fetchall()

    monkeypatch.setattr(seed, "MIN_USERS_TO_DROP_INDEXES", 10)
    before = indexes()
    call_command("seed", users=20, orders_per_user=1, posts_per_user=1, stdout=StringIO())
    assert indexes() == before
    assert User.objects.count() == 20
