"""Statements that take the rows of several requests at once."""

import http_sf
import pytest
from django.db import connection

from accounts.services import create_api_key
from config.api.principal import SCOPES
from config.models import IdempotencyRecord
from orders.models import Order
from tests.conftest import own_session
from tests.server.received import Received, respond_to

# --- Requests


def get_remaining(request):
    ((_, state),) = http_sf.parse(request.headers["RateLimit"].encode(), tltype="list")
    return state["r"]


def test_requests_of_one_user_that_arrive_together_are_counted_one_after_the_other(
    transactional_db, make_user, settings, one_minute
):
    settings.RATE_LIMIT_PRINCIPAL = 4
    keys = [create_api_key(make_user(), name="test", scopes=SCOPES)[1] for _ in range(2)]
    path = "/api/v1/protected"
    send = lambda key: Received(path, key)  # noqa: E731
    first = respond_to(*map(send, [keys[0], keys[1], keys[0], "wrong", keys[0]]))
    assert [(request.status, get_remaining(request)) for request in first if request.status == 200] == [
        *((200, 3), (200, 3), (200, 2), (200, 1)),
    ]
    second = respond_to(*map(send, [keys[0]] * 3))
    assert [(request.status, get_remaining(request)) for request in second] == [(200, 0), (429, 0), (429, 0)]


@own_session
def test_rows_that_are_added_together_are_answered_to_their_own_users(transactional_db, make_user, monkeypatch):
    users = [make_user() for _ in range(4)]
    keys = [create_api_key(user, name="test", scopes=SCOPES)[1] for user in users]
    bodies = [{"item": f"item {number}", "qty": number + 1} for number in range(4)]
    # Where Python is slow, or compiles what is kept, the loop goes on before all of them have asked.
    monkeypatch.setattr("config.fastpath.greenlets.SECONDS_BEFORE_YIELD", 60.0)
    requests = respond_to(*(Received("/api/v1/orders", *pair) for pair in zip(keys, bodies, strict=True)))
    for request, user, body in zip(requests, users, bodies, strict=True):
        assert request.status == 201
        order = Order.objects.get(pk=request.body["data"]["id"])
        assert (order.user_id, order.item, order.qty) == (user.pk, body["item"], body["qty"])


@pytest.mark.parametrize("records", [0, 1, 20, 1_000])
def test_payments_that_are_made_together_have_ids_of_their_own(transactional_db, make_user, records):
    """However many answers are stored, and whatever plan PostgreSQL therefore chooses."""
    owner = make_user().pk
    IdempotencyRecord.objects.bulk_create(
        IdempotencyRecord(
            user_id=owner,
            operation="POST /payments",
            key=f"k{number}",
            fingerprint=b"f",
            status=201,
            location="",
            body="{}",
        )
        for number in range(records)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE config_idempotencyrecord")
    keys = [create_api_key(make_user(), name="test", scopes=SCOPES)[1] for _ in range(4)]
    requests = respond_to(*(Received("/api/v1/payments", key, {"amount": 1}, idempotency_key="k") for key in keys))
    assert [request.status for request in requests] == [201] * 4
    assert len({request.body["data"]["id"] for request in requests}) == 4


def test_replay_takes_no_id(transactional_db, make_user):
    _, key = create_api_key(make_user(), name="test", scopes=SCOPES)

    def send():
        (answered,) = respond_to(Received("/api/v1/orders", key, {"item": "Tea", "qty": 1}, idempotency_key="k"))
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM orders_order_id_seq")
            return answered.status, "Idempotent-Replayed" in answered.headers, cursor.fetchone()[0]

    status, _, last = send()
    assert send() == (status, True, last) == (201, True, last)
