"""Statements of several requests in one flush: each request has its own rows and errors, and nothing is done twice."""

import os
import signal
import time
from dataclasses import dataclass, field
from functools import partial

import psycopg
import pytest
from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg.adapt import Loader
from psycopg.types import TypeInfo

from config.fastpath import inserts
from config.fastpath.inserts import Guard
from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.pipeline import CONNECTIONS
from config.fastpath.postgresql.pool import MAX_CONNECTIONS, MAX_SHARE
from config.fastpath.postgresql.statements import GivenRows, build_given
from config.http.blocking import get_blocking_backend
from config.management.command import direct_connection
from orders.models import Order
from tests.conftest import connect_elsewhere, own_session
from tests.service import find_free_port

# `fail` gives an outcome, of which Python can load one, or fails in the way that is named.
CREATE = """
CREATE TYPE outcome AS ENUM ('fine', 'broken');
CREATE FUNCTION fail(how text) RETURNS outcome LANGUAGE plpgsql AS $$
BEGIN
    CASE how
        WHEN 'unique' THEN RAISE unique_violation;
        WHEN 'serialization' THEN RAISE serialization_failure;
        WHEN 'slow' THEN PERFORM pg_sleep(0.2);
        WHEN 'lost' THEN PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10);
        WHEN 'broken' THEN RETURN 'broken';
        ELSE NULL;
    END CASE;
    RETURN 'fine';
END $$
"""
INSERT = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING item, fail(%s)"
GIVEN = f"WITH {build_given({'item': 'text', 'how': 'text'})} SELECT item, fail(how), given_number FROM given"  # noqa: S608 - of constants
GUARD = "guard AS (SELECT given.* FROM given WHERE fail(how) IS NOT NULL)"
KINDS = ("read", "given", "shared", "deferred")


class LoaderError(psycopg.errors.FeatureNotSupported):
    """What the server says of a statement that it will not run; here it comes from code that reads a value."""


class OutcomeLoader(Loader):
    def load(self, data):
        if bytes(data) == b"broken":
            raise LoaderError
        return bytes(data).decode()


@pytest.fixture
def outcomes(transactional_db):
    with direct_connection(), connection.cursor() as cursor:
        cursor.execute(CREATE)
        oid = TypeInfo.fetch(connection.connection, "outcome").oid
    # What every new connection of Django's copies.
    get_adapters_template(settings.USE_TZ, connection.timezone).register_loader(oid, OutcomeLoader)
    yield
    with direct_connection(), connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION fail; DROP TYPE outcome")


@dataclass
class Work:
    """A request of one statement, which gives its item or fails as it is told; all but reads add a row of it."""

    kind: str
    owner: int
    item: str
    how: object = "not at all"
    added: bool = field(init=False)

    def __post_init__(self):
        self.added = self.kind in {"shared", "deferred"}

    def __call__(self):
        run = get_connection("default").run
        match self.kind:
            case "read":
                (row,) = run("SELECT %s::text, fail(%s::text)", [self.item, self.how])
            case "shared":
                values = [self.owner, self.item, self.how]
                (row,) = run(INSERT, values, shared_transaction=True, is_durable=True)
            case "given":
                (row,) = run(GIVEN, [GivenRows([{"item": self.item, "how": self.how}])])
            case "deferred":
                pending = inserts.reserve(Order, {"user_id": self.owner, "item": self.item, "qty": 1}, "default")
                row = [pending.commit(Guard({"how": "text"}, GUARD, {"how": self.how})) and self.item]
        return row[0]


@pytest.fixture
def works(make_user, outcomes):
    """Makes a request that fails, and between others, of each kind two; or alone."""
    owner = make_user().pk

    def make(kind, how, *, alone=False):
        others = [] if alone else [Work(each, owner, f"{each} {n}") for n, each in enumerate(KINDS * 2)]
        middle = len(others) // 2
        return [*others[:middle], Work(kind, owner, "fails", how), *others[middle:]], middle

    return make


def get_items():
    """What is committed, as another connection sees it."""
    with connect_elsewhere() as other:
        return sorted(item for (item,) in other.execute("SELECT item FROM orders_order"))


# The value that makes a statement fail, the error it meets, and whether its row is there all the same.
FAILURES = {
    "not sent": ("\0", psycopg.DataError, False),
    "not converted": (object(), (psycopg.ProgrammingError, TypeError), False),
    "unique violation": ("unique", psycopg.errors.UniqueViolation, False),
    "serialization failure": ("serialization", psycopg.errors.SerializationFailure, False),
    "not loaded": ("broken", LoaderError, True),
}


@pytest.fixture(params=[False, True], ids=["directly", "as for a pooler"])
def pooler(request, monkeypatch):
    """Behind one, each transaction begins with a statement more."""
    monkeypatch.setitem(connections.settings["default"], "POOLER", request.param)


@pytest.mark.usefixtures("pooler")
@pytest.mark.parametrize("alone", [False, True], ids=["beside others", "alone"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", FAILURES)
def test_failure_stays_with_its_request_and_nothing_is_done_twice(run_together, works, kind, failure, alone):
    how, expected, stored = FAILURES[failure]
    if (kind, failure) == ("deferred", "not loaded"):
        pytest.skip("A deferred insert returns nothing but a number.")
    all_works, position = works(kind, how, alone=alone)
    results = run_together(*all_works)
    failed = results.pop(position)
    failing = all_works.pop(position)
    assert isinstance(getattr(failed, "__cause__", None) or failed, expected)
    assert results == [work.item for work in all_works]
    assert get_items() == sorted(
        [work.item for work in all_works if work.added] + ["fails"] * (stored and failing.added)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_statement_that_takes_long_is_run_by_the_pool_and_has_its_result(run_together, works, kind):
    all_works, _ = works(kind, "slow")
    assert run_together(*all_works) == [work.item for work in all_works]
    assert get_items() == sorted(work.item for work in all_works if work.added)


def test_nobody_waits_for_a_statement_that_takes_long(run_together, works):
    all_works, _ = works("read", "slow")
    ended = []
    run_together(*(lambda work=work: (work(), ended.append(work.item)) for work in all_works))
    assert (len(ended), ended[-1]) == (len(all_works), "fails")


@own_session
@pytest.mark.parametrize("kind", KINDS)
def test_lost_connection_is_the_error_of_what_was_sent_and_no_write_is_sent_again(run_together, works, kind):
    all_works, position = works(kind, "lost")
    results = run_together(*all_works)
    assert isinstance(results[position], OperationalError)
    pairs = list(zip(results, all_works, strict=True))
    assert all(isinstance(each, OperationalError) or each == work.item for each, work in pairs)
    answered = [each for each, work in pairs if work.added and type(each) is str]
    items = get_items()
    assert len(set(items)) == len(items)
    assert set(answered) <= set(items)
    assert "fails" not in items


# --- Rows


def test_a_hundred_requests_at_once_have_each_its_own_row(run_together):
    def read(number):
        ((value, _),) = get_connection("default").run(
            f"WITH {build_given({'value': 'integer'})} SELECT value, given_number FROM given",  # noqa: S608 - of constants
            [GivenRows([{"value": number}])],
        )
        return value

    assert run_together(*(partial(read, number) for number in range(100))) == list(range(100))


COUNT_UP = f"WITH {build_given({'up_to': 'integer'})} SELECT generate_series(1, up_to), given_number FROM given"  # noqa: S608 - of constants


def count_up(up_to, sql=COUNT_UP, constants=(), **options):
    rows = get_connection("default").run(sql, [GivenRows([{"up_to": up_to}]), *constants], **options)
    return [number for number, *_ in rows]


def test_statements_with_other_constants_or_in_other_transactions_stay_apart(run_together):
    sql = COUNT_UP.replace("1, up_to", "%s::integer, up_to")
    arrays = COUNT_UP.replace("1, up_to", "(%s::integer[])[1], up_to")
    results = run_together(
        *(partial(count_up, up_to, sql, [1]) for up_to in (3, 4)),
        *(partial(count_up, up_to, sql, [2]) for up_to in (5, 6)),
        *(partial(count_up, up_to, sql, [2], shared_transaction=True) for up_to in (7, 8)),
        *(partial(count_up, up_to, arrays, [[1]]) for up_to in (0, 1)),
    )
    assert results == [
        *([1, 2, 3], [1, 2, 3, 4]),
        *(list(range(2, up_to + 1)) for up_to in (5, 6, 7, 8)),
        *([], [1]),
    ]


@own_session
def test_statement_that_the_server_was_made_to_forget_is_prepared_again(run_together):
    def run(sql):
        return get_connection("default").run(sql, [])

    def ask():
        first = run("SELECT 1 AS known")
        run("DEALLOCATE ALL")
        return [first, *(run("SELECT 1 AS known") for _ in range(2 * CONNECTIONS))]

    assert run_together(ask) == [[[(1,)]] * (1 + 2 * CONNECTIONS)]


@own_session
def test_connection_that_ends_between_two_flushes_is_opened_again(run_together):
    def ask():
        ((pid,),) = get_connection("default").run("SELECT pg_backend_pid()", [])
        return pid

    def ask_again():
        first = ask()
        with connect_elsewhere() as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        get_blocking_backend().sleep(0.2)
        return first, ask()

    ((first, second),) = run_together(ask_again)
    assert first != second


@own_session
def test_silent_database_is_given_up_and_the_next_statement_has_another_connection(run_together, monkeypatch):
    monkeypatch.setattr("config.fastpath.postgresql.pipeline.MAX_SECONDS_OF_SILENCE", 0.5)
    monkeypatch.setattr("config.fastpath.postgresql.pipeline.SECONDS_BETWEEN_LOOKS", 0.2)

    def ask():
        ((pid,),) = get_connection("default").run("SELECT pg_backend_pid()", [])
        return pid

    def ask_a_silent_one():
        silent = ask()
        os.kill(silent, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(OperationalError):
                ask()
            return time.monotonic() - began, silent, ask()
        finally:
            os.kill(silent, signal.SIGCONT)

    ((seconds, silent, other),) = run_together(ask_a_silent_one)
    assert 0.4 < seconds < 3
    assert other != silent


# --- Transactions, and what holds a thread


def add_in_transaction(owner, item):
    with transaction.atomic():
        Order.objects.create(user_id=owner, item=item, qty=1)
        return connections["default"].connection.info.backend_pid


def test_transactions_have_connections_of_their_own_which_are_few(run_together, make_user):
    owner = make_user().pk
    count = 3 * MAX_CONNECTIONS
    pids = run_together(*(partial(add_in_transaction, owner, f"item {number}") for number in range(count)))
    assert 1 <= len(set(pids)) <= MAX_CONNECTIONS
    assert Order.objects.count() == count


def test_transaction_that_fails_leaves_nothing_and_its_connection_is_used_again(run_together, make_user):
    owner = make_user().pk

    def fail_and_add():
        with pytest.raises(IntegrityError):
            add_in_transaction(owner, "")
        return add_in_transaction(owner, "good")

    assert all(isinstance(pid, int) for pid in run_together(*[fail_and_add] * MAX_CONNECTIONS))
    assert Order.objects.count() == MAX_CONNECTIONS


@own_session
def test_one_caller_has_no_more_than_its_share_of_the_pool(run_together, make_user):
    owner, ended = make_user().pk, []

    def wait_long(name):
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.3)")
        ended.append(name)

    def add():
        add_in_transaction(owner, "item")
        ended.append("other")

    greedy = [partial(wait_long, "greedy")] * (2 * MAX_SHARE)
    run_together(*greedy, add, callers=[*["greedy"] * len(greedy), "other"])
    assert ended == ["other", *["greedy"] * len(greedy)]


def test_requests_go_on_while_another_one_holds_a_thread(run_together):
    ended = []

    def compute():
        assert get_blocking_backend().run(lambda: time.sleep(0.3) or "done") == "done"
        ended.append("computed")

    def read():
        get_connection("default").run("SELECT 1", [])
        ended.append("read")

    run_together(compute, read, read)
    assert ended == ["read", "read", "computed"]


def test_database_that_is_away_is_an_error_at_once(run_together, monkeypatch):
    away = {**connections.settings["default"], "HOST": "127.0.0.1", "PORT": find_free_port()}
    monkeypatch.setitem(connections.settings, "default", away)
    began = time.monotonic()
    (error,) = run_together(lambda: get_connection("default").run("SELECT 1", []))
    assert isinstance(error, OperationalError)
    assert time.monotonic() - began < 2


def test_long_results_hold_the_loop_one_at_a_time(run_together):
    """What others wait for does not grow with the number of long results that come in one flush."""
    sql = "SELECT array_fill(repeat(chr(128512), 1000), ARRAY[2000]), %s"
    longest = 0.0

    def read():
        ((texts, _),) = get_connection("default").run(sql, [1], shared_transaction=True)
        return len(texts)

    def watch(engine):
        def look(before):
            nonlocal longest
            now = time.perf_counter()
            longest = max(longest, now - before)
            engine.loop.call_soon(look, now)

        engine.loop.call_soon(look, time.perf_counter())

    def measure(count):
        nonlocal longest
        longest = 0.0
        assert run_together(*[read] * count, prepare=watch) == [2000] * count
        return longest

    assert min(measure(16) for _ in range(3)) < 4 * min(measure(1) for _ in range(3))
