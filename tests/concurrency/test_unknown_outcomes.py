"""Where nobody knows whether a COMMIT was executed, nothing is run again, and a retry learns the truth."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from config.management.command import direct_connection
from orders.models import Order
from payments.models import Payment
from tests.accounts.oauth.actors import register
from tests.conftest import Caller, fast_path_only, own_session, with_key
from tests.faults.proxy import FATES
from tests.service import wait_for


@pytest.mark.parametrize(("fate", "made"), [(FATES[0], 0), (FATES[1], 1)], ids=FATES)
def test_connection_lost_at_commit_is_503_and_the_retry_learns_the_truth(proxy, make_user, fate, made):
    caller = with_key(make_user())
    assert caller.get("/payments").status == 200
    proxy.rate, proxy.fates = 1, (fate,)
    lost = caller.post("/payments", {"amount": 5}, idempotency_key="k")
    proxy.rate = 0
    assert (lost.status, lost.code, lost.headers["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "1")
    assert proxy.cuts == {fate: 1}
    # PostgreSQL may still be at it.
    wait_for(lambda: Payment.objects.count() >= made)
    again = caller.post("/payments", {"amount": 5}, idempotency_key="k")
    assert (again.status, again.headers.get("Idempotent-Replayed")) == (201, "true" if made else None)
    assert [payment.pk for payment in Payment.objects.all()] == [again.data["id"]]


def test_connection_lost_at_commit_without_a_key_is_503_and_nothing_is_made_again(transactional_db, make_user):
    caller = with_key(make_user())
    with direct_connection(), connection.cursor() as cursor:
        cursor.execute("""
            CREATE SEQUENCE tries;
            CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM nextval('tries'), pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON orders_order
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()
        """)
    try:
        lost = caller.post("/orders", {"item": "Tea", "qty": 1})
        assert (lost.status, lost.code, lost.headers["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "1")
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM tries")
            assert cursor.fetchone() == (1,)
    finally:
        with direct_connection(), connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER lose ON orders_order; DROP FUNCTION lose; DROP SEQUENCE tries")
    assert not Order.objects.exists()
    assert caller.post("/orders", {"item": "Tea", "qty": 1}).status == 201


@contextmanager
def standby() -> Iterator[None]:
    """The database answers, and takes no write, on new connections neither."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    connection.close()
    try:
        yield
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        connection.close()


@pytest.fixture
def demote(transactional_db) -> Iterator[Callable[[], int]]:
    """Lets the server of this thread's connection take no more writes, and gives the connection's process id.

    A new connection leads to a server that takes them.
    """

    def demote() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        return connection.connection.info.backend_pid

    yield demote
    connection.close()


@own_session
@fast_path_only
def test_server_that_has_become_a_standby_is_left_within_the_request(make_user, demote):
    caller = with_key(make_user())
    before = demote()
    assert caller.post("/payments", {"amount": 5}, idempotency_key="k").status == 201
    assert connection.connection.info.backend_pid != before


@own_session
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_server_that_has_become_a_standby_costs_one_request_at_most(make_user, demote, method):
    caller = with_key(make_user())
    demote()

    def write():
        # As Django does when a request begins; its test client leaves it out.
        connection.close_if_unusable_or_obsolete()
        if method == "POST":
            return caller.post("/payments", {"amount": 5}, idempotency_key="k")
        return caller.patch(f"/users/{caller.user.pk}", {"name": "Other"})

    first, second = write(), write()
    assert first.status in {200, 201, 503}
    assert second.status in {200, 201}
    assert Payment.objects.count() == (method == "POST")


@own_session
def test_standby_that_has_not_taken_over_yet_is_waited_for(transactional_db, make_user):
    caller = with_key(make_user())
    assert caller.get("/payments").status == 200
    with standby():
        away = caller.post("/payments", {"amount": 5}, idempotency_key="k")
    assert (away.status, away.code, away.headers["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "1")
    assert caller.post("/payments", {"amount": 5}, idempotency_key="k").status == 201


@own_session
def test_what_needs_no_write_is_answered_by_a_standby(transactional_db, make_user):
    caller = with_key(make_user())
    assert caller.get("/users").status == 200
    with standby():
        answers = [Caller().get("/"), caller.get("/users"), caller.get("/nowhere")]
    assert [answer.status for answer in answers] == [200, 200, 404]


@own_session
def test_standby_is_told_by_oauth_in_its_own_words_and_in_one_line(transactional_db, make_user, told):
    machine = register(make_user(), grant="client-credentials", redirect_uris="")
    with standby():
        away = machine.act()
    assert (away.status, away.body["error"], away.headers["Retry-After"]) == (503, "temporarily_unavailable", "1")
    assert [line["logger"] for line in told() if line["level"] == "ERROR"] == ["config.api.exceptions"]
    assert machine.act().status == 200
