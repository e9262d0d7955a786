"""Each kind of failure, of each kind of work, at each position of a batch: who meets it, and what is committed."""

import gc
import os
import signal
import socket
from dataclasses import dataclass, field
from itertools import chain
from unittest import mock

import psycopg
import pytest
from django.db import OperationalError, connection
from greenlet import GreenletExit, getcurrent
from psycopg.adapt import Loader
from psycopg.types import TypeInfo

from config.fastpath import batching, inserts
from config.fastpath.inserts import Guard
from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.given_rows import GivenRows, build_given
from config.management.command import direct_connection
from config.postgresql.parameters import with_parameters
from config.postgresql.transactions import is_unavailable
from orders.models import Order
from tests.conftest import connect_elsewhere, end_connection, own_session, wait_until
from tests.faults.proxy import FATES

pytestmark = pytest.mark.usefixtures("outcomes")

# `fail` gives an outcome, of which Python can load one, or fails in the way that is named.
CREATE = """
CREATE TYPE outcome AS ENUM ('fine', 'broken');
CREATE FUNCTION fail(how text) RETURNS outcome LANGUAGE plpgsql AS $$
BEGIN
    CASE how
        WHEN 'unique' THEN RAISE unique_violation;
        WHEN 'serialization' THEN RAISE serialization_failure;
        WHEN 'deadlock' THEN RAISE deadlock_detected;
        WHEN 'slow' THEN PERFORM pg_sleep(10);
        WHEN 'cancelled' THEN PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(10);
        WHEN 'lost' THEN PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10);
        WHEN 'broken' THEN RETURN 'broken';
        ELSE RETURN 'fine';
    END CASE;
END $$
"""
DROP = "DROP FUNCTION fail; DROP TYPE outcome"


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
    prepare_connection()
    yield
    with direct_connection(), connection.cursor() as cursor:
        cursor.execute(DROP)


def prepare_connection():
    """Opens a connection that can load outcomes."""
    connection.close()
    connection.ensure_connection()
    opened = connection.connection
    opened.adapters.register_loader(TypeInfo.fetch(opened, "outcome").oid, OutcomeLoader)


# --- Kinds of work: each sends one statement, which fails as it is told

INSERT = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING item, fail(%s)"
GIVEN = f"WITH {build_given({'item': 'text', 'how': 'text'})} SELECT item, fail(how), given_number FROM given"  # noqa: S608 - of constants
GUARD = "guard AS (SELECT given.* FROM given WHERE fail(how) IS NOT NULL)"


@dataclass
class Work:
    """A task of one statement.

    Attributes:
        kind: how the statement is run.
        item: what it gives, and of all but reads the row that it adds.
        how: the failure it meets.
        result: what it gave or raised.
    """

    kind: str
    owner: int
    item: str
    how: object = "not at all"
    result: object = field(default=None, init=False)

    def __post_init__(self):
        if self.kind == "deferred":
            values = {"user_id": self.owner, "item": self.item, "qty": 1}
            self.pending = inserts.reserve(Order, values, "default")

    def __call__(self):
        try:
            self.result = self.run()
        except Exception as error:  # noqa: BLE001 - what it is, is the result
            self.result = error

    def run(self):
        match self.kind:
            case "read":
                ((row,),) = connection.run(("SELECT %s::text, fail(%s::text)", [self.item, self.how]))
                return row[0]
            case "shared":
                ((row,),) = connection.run((INSERT, [self.owner, self.item, self.how]), shared_transaction=True)
                return row[0]
            case "given":
                ((row,),) = connection.run((GIVEN, [GivenRows([{"item": self.item, "how": self.how}])]))
                return row[0]
            case "deferred":
                return self.pending.commit(Guard({"how": "text"}, GUARD, {"how": self.how})) and self.item
        raise AssertionError(self.kind)

    @property
    def adds(self):
        return self.kind in {"shared", "deferred"}

    @property
    def cause(self):
        return type(getattr(self.result, "__cause__", None) or self.result)


KINDS = ("read", "given", "shared", "deferred")
# One statement serves those of the same kind.
JOINED = ("given", "deferred")
POSITIONS = {"first": 0, "middle": 3, "last": 8, "only": None}
# The value that makes a statement fail, the error it meets, and whether its row is there all the same.
FAILURES = {
    "not sent": ("\0", psycopg.DataError, False),
    "not converted": (object(), psycopg.ProgrammingError, False),
    "unique violation": ("unique", psycopg.errors.UniqueViolation, False),
    "serialization failure": ("serialization", psycopg.errors.SerializationFailure, False),
    "deadlock": ("deadlock", psycopg.errors.DeadlockDetected, False),
    "statement timeout": ("slow", psycopg.errors.QueryCanceled, False),
    "cancelled": ("cancelled", psycopg.errors.QueryCanceled, False),
    "not loaded": ("broken", LoaderError, True),
}
in_each_position = pytest.mark.parametrize("position", POSITIONS)
beside_others = pytest.mark.parametrize("position", [name for name in POSITIONS if name != "only"])
of_each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def batch(make_user):
    """Makes a piece of work and what runs beside it: of each kind two."""
    owner = make_user().pk

    def make(kind, position, how):
        failing = Work(kind, owner, "fails", how)
        if POSITIONS[position] is None:
            return failing, []
        others = [Work(each, owner, f"{each} {number}") for number, each in enumerate(KINDS * 2)]
        return failing, others

    return make


def run(position, failing, others, before=lambda: None):
    """Runs work side by side; the failing one stands at the position. Returns how many were sent at once."""
    sizes = []
    send = connection.run_batches

    def run_batches(batches):
        sizes.append(len(batches))
        before()
        return send(batches)

    works = [*others]
    works.insert(POSITIONS[position] or 0, failing)
    with mock.patch.object(get_connection("default"), "run_batches", run_batches):
        batching.run(works)
    return sizes


def get_groups(works):
    """Those that are sent at once, in their order: deferred inserts come last."""
    groups = [[work for work in works if (work.kind == "deferred") is comes_last] for comes_last in (False, True)]
    return [group for group in groups if group]


def added_by(works):
    return [work.item for work in works if work.adds]


def get_items():
    """What is committed, as another connection sees it."""
    with connect_elsewhere() as other:
        return sorted(item for (item,) in other.execute("SELECT item FROM orders_order"))


def get_backend():
    return connection.connection.info.backend_pid


def assert_alone(failing, others, expected, *, added, backend):
    assert failing.cause is expected
    assert [work.result for work in others] == [work.item for work in others]
    assert get_items() == sorted(added_by(others) + [failing.item] * added)
    # The connection is the same, and in no transaction.
    assert get_backend() == backend
    assert (connection.is_usable(), connection.get_autocommit(), connection.needs_rollback) == (True, True, False)
    after = Work("shared", failing.owner, "after")
    after()
    assert after.result == "after"


@in_each_position
@of_each_kind
@pytest.mark.parametrize("failure", FAILURES)
def test_failure_stays_with_its_task_and_nothing_is_run_twice(batch, kind, position, failure):
    how, expected, stored = FAILURES[failure]
    if (kind, failure) == ("deferred", "not loaded"):
        pytest.skip("A deferred insert returns nothing but a number.")
    failing, others = batch(kind, position, how)
    before = connection.settings_dict
    if how == "slow":
        connection.settings_dict = with_parameters(before, statement_timeout="1s")
        prepare_connection()
    backend = get_backend()
    sizes = run(position, failing, others)
    connection.settings_dict = before
    assert sizes == [len(group) for group in get_groups([failing, *others])] * bool(others)
    assert_alone(failing, others, expected, added=stored and failing.adds, backend=backend)


# --- A connection that is lost


def assert_lost(group, others):
    assert [type(work.result) for work in group] == [OperationalError] * len(group)
    assert [work.result for work in others] == [work.item for work in others]
    assert get_items() == sorted(added_by(others))
    # The next one finds a connection, and nothing of the lost one is done later.
    after = Work("shared", group[0].owner, "after", "not at all")
    prepare_connection()
    after()
    assert (after.result, get_items()) == ("after", sorted(["after", *added_by(others)]))


@own_session
@in_each_position
@of_each_kind
def test_connection_that_was_lost_before_is_lost_for_all_that_are_sent_first(batch, kind, position):
    failing, others = batch(kind, position, "not at all")
    end_connection()
    run(position, failing, others)
    first, *rest = get_groups([failing, *others])
    assert_lost(first, list(chain(*rest)))


@own_session
@in_each_position
@of_each_kind
def test_connection_that_is_lost_during_a_statement_is_lost_for_all_that_were_sent_with_it(batch, kind, position):
    failing, others = batch(kind, position, "lost")
    run(position, failing, others)
    # What is a transaction of its own and was answered before is as good as lost: nobody read it.
    (lost,) = (group for group in get_groups([failing, *others]) if failing in group)
    assert_lost(lost, [work for work in others if work not in lost])


@own_session
@in_each_position
@pytest.mark.parametrize("fate", FATES)
def test_connection_that_is_lost_at_the_commit_leaves_all_rows_or_none(proxy, batch, position, fate):
    """Nothing is run again, whichever it was."""
    prepare_connection()
    failing, others = batch("deferred", position, "not at all")
    # Prepared before, so that the proxy meets it at work.
    Work("deferred", failing.owner, "before")()
    assert get_items() == ["before"]
    proxy.rate, proxy.fates = 1, (fate,)
    run(position, failing, others)
    proxy.rate = 0
    *answered, lost = get_groups([failing, *others])
    before = list(chain(*answered))
    assert proxy.cuts == {fate: 1}
    assert [type(work.result) for work in lost] == [OperationalError] * len(lost)
    assert [work.result for work in before] == [work.item for work in before]
    possible = [[]] * (fate == FATES[0]) + [added_by(lost)] * (fate == FATES[1])
    stored = [sorted(["before", *added_by(before), *items]) for items in possible]
    wait_until(lambda: get_items() in stored)


# --- A task that is ended


@beside_others
@of_each_kind
def test_task_that_is_killed_while_it_waits_ends_alone(batch, kind, position, caplog):
    failing, others = batch(kind, position, "not at all")
    waiting = []
    work = failing.run
    failing.run = lambda: waiting.append(getcurrent()) or work()

    backend = get_backend()
    run(position, failing, others, before=lambda: waiting and waiting.pop().throw(GreenletExit))
    assert (failing.result, caplog.messages) == (None, ["A task failed"])
    failing.result = GreenletExit()
    # It had been submitted.
    assert_alone(failing, others, GreenletExit, added=failing.adds, backend=backend)


@pytest.fixture
def interrupt():
    """Ctrl-C after a moment."""

    def raise_interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raise_interrupt)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.signal(signal.SIGALRM, before)


@own_session
@beside_others
def test_interrupt_ends_all_tasks_and_their_connection(batch, interrupt, position, caplog):
    failing, others = batch("read", position, "slow")
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        run(position, failing, others)
    gc.collect()
    # As when a connection is lost: what had been sent is there or not, and nobody was told that it is.
    assert {work.result for work in (failing, *others)} == {None}
    assert caplog.messages == ["A task failed"] * (1 + len(others))
    assert connection.connection.closed
    connection.close_if_unusable_or_obsolete()
    (sent, _) = get_groups([failing, *others])
    wait_until(lambda: get_items() in ([], sorted(added_by(sent))))
    prepare_connection()
    after = Work("read", failing.owner, "after")
    after()
    assert after.result == "after"


@own_session
def test_each_task_of_a_batch_learns_that_its_connection_was_cut_without_a_word() -> None:
    met: list[Exception] = []

    def ask() -> None:
        try:
            get_connection("default").run(("SELECT %s::text", ["a"]))
        except Exception as error:  # noqa: BLE001 - what it is, is the result
            met.append(error)

    batching.run([ask, ask])
    # It was found to live, and is cut before the batch is sent.
    connection.health_check_done = True
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
    batching.run([ask, ask])
    assert [is_unavailable(error) for error in met] == [True, True]
    batching.run([ask, ask])
    assert len(met) == 2
