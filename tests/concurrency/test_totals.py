"""Totals under writes at the same time: exact, of the page's own moment, and nobody waits for anybody."""

from __future__ import annotations

import threading
from functools import partial

import psycopg
from django.db import connection, transaction

from config.models import RowCount
from config.postgresql import row_counts
from orders.models import Order
from tests.conftest import find_wrong_counts
from users.models import User

WRITERS, ROUNDS = 20, 4


def insert_in_bulk(owner, rounds=3):
    """Two lists in one transaction, in an order that its twin may turn round."""
    for number in range(rounds):
        with transaction.atomic():
            Order.objects.bulk_create(Order(user=owner, item="x", qty=1) for _ in range(500))
            User.objects.create(name="N", email=f"{owner.pk}-{number}-{threading.get_ident()}@example.com")


def write_singly(owner, number):
    for step in range(ROUNDS):
        with transaction.atomic():
            if (number + step) % 2:
                user = User.objects.create(name="N", email=f"s{number}-{step}@example.com")
                Order.objects.create(user=owner, item="x", qty=1)
            else:
                order = Order.objects.create(user=owner, item="x", qty=1)
                user = User.objects.create(name="N", email=f"s{number}-{step}@example.com", status="inactive")
                order.delete()
        User.objects.filter(pk=user.pk).update(role="support")


def recount():
    for counts in row_counts.get_all_counts():
        counts.recount()


def test_bulk_and_single_writers_folding_and_recounting_at_once_leave_exact_counts(at_once, make_user):
    owner = make_user()
    at_once(
        [partial(insert_in_bulk, owner), partial(insert_in_bulk, owner)]
        + [partial(write_singly, owner, number) for number in range(WRITERS)]
        + [lambda: [row_counts.compact() for _ in range(ROUNDS)], lambda: [recount() for _ in range(ROUNDS)]]
    )
    assert find_wrong_counts() == []
    assert Order.objects.count() == 3_000 + WRITERS * ROUNDS // 2
    row_counts.compact()
    assert find_wrong_counts() == []
    assert set(RowCount.objects.values_list("slot", flat=True)) == {0}


INSERT = "INSERT INTO orders_order (user_id, item, qty) SELECT %s, 'x', 1 FROM generate_series(1, %s)"


def test_write_that_stays_open_keeps_no_other_waiting_and_is_not_seen(elsewhere, admin):
    elsewhere.execute(INSERT, [admin.user.pk, 5_000])
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    try:
        assert admin.post("/orders", {"item": "x", "qty": 1}).status == 201
        row_counts.compact()
        assert admin.get("/orders").meta["total"] == 1
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    elsewhere.commit()
    assert admin.get("/orders").meta["total"] == 5_001
    assert find_wrong_counts() == []


def test_total_and_rows_of_a_page_are_of_one_moment(at_once, admin):
    owner, done = admin.user, threading.Event()

    def write():
        for number in range(40):
            Order.objects.bulk_create(Order(user=owner, item="x", qty=1) for _ in range(number % 5 + 1))
            Order.objects.filter(pk__in=Order.objects.order_by("pk").values("pk")[: number % 7]).delete()
        done.set()

    def read(path):
        seen = set()
        while not done.is_set():
            page = admin.get(path)
            assert len(page.data) == min(page.meta["total"], 100)
            seen.add(page.meta["total"])
        return len(seen)

    # The owner's list is counted row by row, the administrator's by its counts.
    paths = ["/orders?limit=100", "/orders?limit=100&sort=item", f"/users/{owner.pk}/orders?limit=100"]
    _, *changes = at_once([write, *(partial(read, path) for path in paths)])
    assert all(number > 1 for number in changes)


def test_count_that_a_snapshot_does_not_see_is_not_lost(elsewhere, admin):
    """A write under REPEATABLE READ, whose snapshot is older than a count, fails rather than miscounts."""
    elsewhere.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    elsewhere.execute("SELECT 1 FROM config_rowcount")
    Order.objects.create(user=admin.user, item="x", qty=1)
    try:
        elsewhere.execute(INSERT, [admin.user.pk, 1])
        elsewhere.commit()
    except psycopg.errors.SerializationFailure:
        elsewhere.rollback()
    assert find_wrong_counts() == []
