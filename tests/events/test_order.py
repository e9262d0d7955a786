"""The order of events never contradicts that of a row's changes, and nothing is committed behind a reader."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Flag
from typing import Any, NamedTuple

import pytest
from django.db import connection

from config.models import Event
from orders.models import Order
from tests.conftest import connect_elsewhere, wait_for_events, wait_until_somebody_waits_for

pytestmark = pytest.mark.django_db(transaction=True)

_ADD = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1)"
_RENAME = "UPDATE posts_post SET title = %s WHERE id = %s"
_ADD_MANY = "INSERT INTO orders_order (user_id, item, qty) SELECT %s, %s, 1 FROM generate_series(1, %s)"


def read_now():
    return list(Event.objects.after(0, 0, 1_000_000))


def read_all():
    wait_for_events()
    return read_now()


def follow(stop: Flag) -> list[Event]:
    """What a follower reads until nothing comes any more."""
    read: list[Event] = []
    position, last = 0, 0
    while True:
        is_last_look = stop.is_set()
        page = list(Event.objects.after(position, last, 100))
        if page:
            read += page
            position, last = page[-1].position, page[-1].id
        elif is_last_look:
            return read


def test_event_is_there_at_once(user):
    Order.objects.create(user=user.user, item="i", qty=1)
    assert read_all()[-1].type == "order.created"


def test_nothing_is_read_beyond_a_transaction_under_way(user, elsewhere):
    before = len(read_all())
    elsewhere.execute(_ADD, [user.user.pk, "slow"])
    Order.objects.create(user=user.user, item="quick", qty=1)
    assert len(read_now()) == before
    elsewhere.commit()
    slow, quick = read_all()[before:]
    assert (slow.resource_id, quick.resource_id) == tuple(Order.objects.order_by("item").values_list("id", flat=True))[
        ::-1
    ]


def test_rolled_back_transaction_holds_nobody_up(user, elsewhere):
    elsewhere.execute(_ADD, [user.user.pk, "slow"])
    Order.objects.create(user=user.user, item="quick", qty=1)
    elsewhere.rollback()
    assert [event.type for event in read_all()].count("order.created") == 1


def test_reader_in_a_transaction_holds_nobody_up(user, elsewhere):
    elsewhere.execute("SELECT count(*) FROM orders_order")
    Order.objects.create(user=user.user, item="quick", qty=1)
    assert read_all()[-1].type == "order.created"


def test_older_transaction_that_waited_for_the_row_comes_after(user):
    """Its id is the lower one: it has written before, elsewhere."""
    post = user.user.posts.create(title="first")
    before = len(read_all())
    with connect_elsewhere() as older, connect_elsewhere() as younger, ThreadPoolExecutor(1) as thread:
        older.execute(_ADD, [user.user.pk, "elsewhere"])
        younger.execute(_RENAME, ["second", post.pk])
        # Between the younger one's write and its end, others end.
        for number in range(3):
            Order.objects.create(user=user.user, item=f"i{number}", qty=1)
        waiting = thread.submit(older.execute, _RENAME, ["third", post.pk])
        wait_until_somebody_waits_for(younger)
        younger.commit()
        waiting.result()
        older.commit()
    renamed = [event for event in read_all()[before:] if event.type == "post.updated"]
    assert [event.id for event in renamed] == sorted(event.id for event in renamed)
    first, last = renamed
    assert first.position <= last.position


class Load(NamedTuple):
    """How much is written.

    Attributes:
        longest: a writer's pause between the statements of a transaction, at the most, in seconds.
        batch: how many orders a transaction adds.
    """

    writers: int
    rounds: int
    longest: float
    batch: int


def write(number: int, user_id: int, posts: list[int], load: Load) -> int:
    """Writes in transactions, some of which are rolled back. Returns how many events are committed."""
    chance, committed = random.Random(number), 0  # noqa: S311 - of a trial
    with connect_elsewhere() as own:
        for round_ in range(load.rounds):
            own.execute(_ADD_MANY, [user_id, f"{number} {round_}", load.batch])
            time.sleep(chance.random() * load.longest)
            own.execute(_RENAME, [f"{number} {round_}", chance.choice(posts)])
            time.sleep(chance.random() * load.longest / 10)
            if chance.random() < 0.3:
                own.rollback()
            else:
                own.commit()
                committed += load.batch + 1
    return committed


@pytest.mark.parametrize("load", [Load(writers=8, rounds=12, longest=0.05, batch=3)])
def test_followers_miss_nothing_and_see_the_changes_of_each_row_in_order(user, load):
    posts = [user.user.posts.create(title="first").pk for _ in range(max(3, load.writers // 2))]
    before = Event.objects.count()
    stop = Flag()

    def run_follower() -> list[Event]:
        try:
            return follow(stop)
        finally:
            connection.close()

    with ThreadPoolExecutor(load.writers + 2) as threads:
        followers = [threads.submit(run_follower) for _ in range(2)]
        writers = [threads.submit(write, number, user.user.pk, posts, load) for number in range(load.writers)]
        committed = sum(writer.result() for writer in writers)
        wait_for_events()
        stop.set()
        read: list[Any] = [follower.result() for follower in followers]
    ids = sorted(Event.objects.values_list("id", flat=True))
    assert len(ids) == before + committed
    for each in read:
        assert sorted(event.id for event in each) == ids
        for post in posts:
            # Whoever has changed a row has its lock until the end: the ids of its events are in the order of changes.
            of_post = [event.id for event in each if event.resource_id == post and event.type == "post.updated"]
            assert of_post == sorted(of_post)
