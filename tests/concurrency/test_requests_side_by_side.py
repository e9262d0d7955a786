"""Requests that arrive together share waits and transactions, and no fate: what each is answered is what is stored."""

from contextlib import contextmanager

import pytest
from django.db import connection

from accounts.services import create_api_key
from config.api.principal import SCOPES
from config.management.command import direct_connection
from orders.models import Order
from payments.models import Payment
from tests.server.received import Received, respond_to

POSITIONS = {"middle": 2, "only": None}
TABLES = {"orders": Order, "payments": Payment}
# What a trigger does where a row is added, and the answer to who adds it.
FAILURES = {
    "unique violation": ("RAISE unique_violation", 500),
    "serialization failure": ("RAISE serialization_failure", 503),
    "deadlock": ("RAISE deadlock_detected", 503),
    "cancelled": ("PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(10)", 503),
    "lost connection": ("PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10)", 503),
}
in_each_position = pytest.mark.parametrize("position", POSITIONS)
of_each_kind = pytest.mark.parametrize("kind", TABLES)


class Arrival:
    """Requests that arrive together, each of its own user: all add a row under a key, one at `position` may fail."""

    def __init__(self, make_user, kind, position):
        self.table, self.index = TABLES[kind], POSITIONS[position] or 0
        self.users = [make_user() for _ in range(5 if POSITIONS[position] is not None else 1)]
        self.keys = [create_api_key(user, name="test", scopes=SCOPES)[1] for user in self.users]
        self.kind, self.requests = kind, []

    def send(self):
        self.requests = respond_to(*map(self._build, self.keys, range(len(self.keys))))

    def _build(self, key, number):
        body = {"item": f"item {number}", "qty": 1} if self.kind == "orders" else {"amount": 1 + number}
        return Received(f"/api/v1/{self.kind}", key, body, idempotency_key=f"k{number}")

    @property
    def failing(self):
        return self.requests[self.index]

    @property
    def others(self):
        return [request for request in self.requests if request is not self.failing]

    def get_stored(self):
        return sorted(self.table.objects.values_list("pk", flat=True))

    @contextmanager
    def failure(self, action, *, times=1_000, at_commit=False):
        """What the failing request adds meets a failure, the first so many times."""
        table = self.table._meta.db_table
        kind = "CONSTRAINT TRIGGER fail AFTER" if at_commit else "TRIGGER fail BEFORE"
        with direct_connection(), connection.cursor() as cursor:
            cursor.execute(f"""
                CREATE SEQUENCE tries;
                CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN IF nextval('tries') <= {times} THEN {action}; END IF; RETURN NEW; END $$;
                CREATE {kind} INSERT ON {table} {"DEFERRABLE INITIALLY DEFERRED" if at_commit else ""}
                FOR EACH ROW WHEN (NEW.user_id = {self.users[self.index].pk}) EXECUTE FUNCTION fail()
            """)
        try:
            yield
        finally:
            with direct_connection(), connection.cursor() as cursor:
                cursor.execute(f"DROP TRIGGER fail ON {table}; DROP FUNCTION fail; DROP SEQUENCE tries")

    def assert_told_the_truth(self):
        """Sends all once more: what was stored is replayed, byte for byte where it was answered; all is there once."""
        stored = self.get_stored()
        first = [(request.status, request.body) for request in self.requests]
        self.send()
        for (status, body), request in zip(first, self.requests, strict=True):
            assert request.status == 201
            replayed = request.headers.get("Idempotent-Replayed") == "true"
            assert replayed == (request.body["data"]["id"] in stored)
            # A 503 leaves it open, and only where the connection was lost; every other answer does not.
            assert replayed if status == 201 else (not replayed or status == 503)
            assert status != 201 or request.body == body
        assert self.get_stored() == sorted(request.body["data"]["id"] for request in self.requests)


@pytest.fixture
def arrive(transactional_db, make_user):
    return lambda kind, position: Arrival(make_user, kind, position)


@in_each_position
@of_each_kind
@pytest.mark.parametrize("at_commit", [False, True], ids=["statement", "commit"])
@pytest.mark.parametrize("failure", [name for name in FAILURES if name != "lost connection"])
def test_error_is_the_answer_of_one_request(arrive, kind, position, failure, at_commit):
    arrival = arrive(kind, position)
    action, status = FAILURES[failure]
    with arrival.failure(action, at_commit=at_commit):
        arrival.send()
        assert arrival.failing.status == status
        assert [request.status for request in arrival.others] == [201] * len(arrival.others)
        assert arrival.get_stored() == sorted(request.body["data"]["id"] for request in arrival.others)
    arrival.assert_told_the_truth()


@in_each_position
@of_each_kind
@pytest.mark.parametrize("failure", ["serialization failure", "deadlock"])
def test_what_the_database_asks_to_run_again_is_run_again(arrive, kind, position, failure):
    arrival = arrive(kind, position)
    with arrival.failure(FAILURES[failure][0], times=2):
        arrival.send()
        assert [request.status for request in arrival.requests] == [201] * len(arrival.requests)
        assert arrival.get_stored() == sorted(request.body["data"]["id"] for request in arrival.requests)
    arrival.assert_told_the_truth()


@in_each_position
@of_each_kind
@pytest.mark.parametrize("at_commit", [False, True], ids=["statement", "commit"])
def test_connection_that_is_lost_is_503_and_nothing_is_stored_that_was_not_answered(arrive, kind, position, at_commit):
    arrival = arrive(kind, position)
    action, status = FAILURES["lost connection"]
    with arrival.failure(action, at_commit=at_commit):
        arrival.send()
        assert arrival.failing.status == status
        assert {request.status for request in arrival.others} <= {201, 503}
        answered = [request.body["data"]["id"] for request in arrival.others if request.status == 201]
        assert arrival.get_stored() == sorted(answered)
    arrival.assert_told_the_truth()
