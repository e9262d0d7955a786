"""Tasks that one thread runs side by side share the waits for the database, and nothing else."""

import gc
import weakref
from contextvars import ContextVar
from functools import partial

import psycopg
import pytest
from asgiref.local import Local
from django.db import DataError, IntegrityError, OperationalError, ProgrammingError, connection, transaction
from greenlet import GreenletExit, getcurrent

from config.fastpath import batching
from tests.conftest import end_connection, own_session

INSERT = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING item"


@pytest.fixture
def owner(make_user):
    return make_user().pk


def select(number):
    ((value,),) = connection.run(("SELECT %s::int", [number]))[0]
    return value


def expect(error, results, task):
    """A task that must raise the error, whose cause is added to the results."""

    def run():
        with pytest.raises(error) as raised:
            task()
        results.append(raised.value.__cause__)

    return run


def test_each_task_gets_its_own_results(sizes):
    results = {}

    def task(number):
        results[number] = [select(10 * number + step) for step in range(number)]

    batching.run([partial(task, number) for number in range(1, 6)])
    assert results == {number: [10 * number + step for step in range(number)] for number in range(1, 6)}
    assert sizes == [5, 4, 3, 2, 1]


def test_statements_of_one_batch_are_one_transaction(sizes, owner):
    results = []
    fails = partial(connection.run, (INSERT, [owner, "gone"]), (INSERT, [owner, ""]))
    succeeds = partial(connection.run, (INSERT, [owner, "there"]), ("SELECT 1", []))
    batching.run([expect(IntegrityError, results, fails), succeeds, lambda: results.append(select(7))])
    assert isinstance(results[0], psycopg.errors.CheckViolation)
    assert results[1] == 7
    assert connection.run(("SELECT item FROM orders_order", [])) == [[("there",)]]
    assert sizes == [3]


def test_single_task_submits_nothing(sizes):
    results = []
    batching.run([lambda: results.append((select(1), batching.may_submit()))])
    assert (results, sizes) == ([(1, False)], [])


def test_only_tasks_beside_others_may_submit():
    results = [batching.may_submit()]
    batching.run([lambda: results.append(batching.may_submit())] * 2)
    assert [*results, batching.may_submit()] == [False, True, True, False]


def test_error_stays_with_its_task(transactional_db):
    results = []
    wrong = partial(connection.run, ("SELECT 1 / %s::int", [0]))
    batching.run(
        [lambda: results.append(select(1)), expect(DataError, results, wrong), lambda: results.append(select(3))],
    )
    assert (results[0], results[2]) == (1, 3)
    assert isinstance(results[1], psycopg.errors.DivisionByZero)
    assert connection.is_usable()


@pytest.mark.parametrize(
    ("error", "statement"),
    [
        (DataError, ("SELECT %s::text", ["\0"])),
        (UnicodeEncodeError, ("SELECT %s::text", ["\ud800"])),
        (ProgrammingError, ("SELECT %s", [object()])),
        (ProgrammingError, ("SELECT nowhere", [])),
        (DataError, ("SELECT 'infinity'::timestamptz", [])),
    ],
)
@pytest.mark.parametrize("shared", [True, False])
def test_what_cannot_be_sent_or_loaded_is_the_error_of_one_task(sizes, error, statement, shared):
    results = []
    wrong = partial(connection.run, ("SELECT 1", []), statement, shared_transaction=shared)
    tasks = [lambda: results.append(select(1)), expect(error, [], wrong), lambda: results.append(select(3))]
    batching.run(tasks)
    assert (results, sizes) == ([1, 3], [3])
    assert connection.is_usable()


def test_task_that_raises_ends_alone(sizes, caplog):
    results = []

    def fails():
        select(1)
        raise SystemExit

    batching.run([fails, lambda: results.extend((select(2), select(3)))])
    assert (results, sizes) == ([2, 3], [2, 1])
    assert caplog.messages == ["A task failed"]


def test_single_task_that_raises_is_logged(caplog):
    batching.run([lambda: 1 / 0])
    assert caplog.messages == ["A task failed"]


def test_error_of_the_execution_is_raised_in_all_tasks(caplog):
    results = []

    def execute(queries):
        raise LookupError(*queries)

    def task(name):
        with pytest.raises(LookupError) as raised:
            batching.submit(execute, name)
        results.append(raised.value.args)

    batching.run([partial(task, "a"), partial(task, "b")])
    assert results == [("a", "b")] * 2
    assert not caplog.messages


def test_queries_for_the_same_are_executed_together_whoever_submits_others():
    executed, results = [], {}

    def double(numbers):
        executed.append(numbers)
        return [2 * number for number in numbers]

    def spell(words):
        executed.append(words)
        return ["-".join(word) for word in words]

    def task(name, *steps):
        results[name] = [batching.submit(*step) for step in steps]

    batching.run(
        [
            partial(task, "a", (double, 1), (spell, "ab")),
            partial(task, "b", (spell, "cd"), (double, 2)),
            partial(task, "c", (double, 3), (double, 4)),
        ]
    )
    assert results == {"a": [2, "a-b"], "b": ["c-d", 4], "c": [6, 8]}
    assert executed == [[1, 3], ["cd"], ["ab"], [4, 2]]


def test_what_comes_last_waits_until_others_have_ended():
    executed, results = [], []

    def execute(queries):
        executed.append(queries)
        return queries

    def read():
        for number in range(3):
            batching.submit(execute, f"read {number}")
        results.append("read")

    def write(name):
        batching.submit(execute, f"look-up of {name}")
        batching.submit(execute, f"write of {name}", comes_last=True)
        results.append(name)

    def begin():
        batching.step_back()
        results.append("transaction")

    batching.run([partial(write, "a"), begin, read, partial(write, "b")])
    assert executed == [
        ["look-up of a", "read 0", "look-up of b"],
        ["read 1"],
        ["read 2"],
        ["write of a", "write of b"],
    ]
    assert results == ["read", "transaction", "a", "b"]
    batching.step_back()


def test_transaction_is_never_interleaved(sizes, owner):
    seen = []

    def write(item):
        with transaction.atomic():
            for number in range(2):
                connection.run((INSERT, [owner, f"{item}{number}"]))
                seen.append(item)
        select(0)

    batching.run([partial(write, "a"), partial(write, "b"), lambda: seen.append(select(7))])
    assert seen == ["a", "a", "b", "b", 7]
    assert sizes == [3]
    assert connection.run(("SELECT count(*) FROM orders_order", [])) == [[(4,)]]


VARIABLE: ContextVar[str] = ContextVar("VARIABLE")
LOCAL = Local()


@pytest.fixture
def outside():
    """Values from outside of the tasks, which these neither see nor change."""
    token, LOCAL.value = VARIABLE.set("outside"), "outside"
    yield
    assert (VARIABLE.get(), LOCAL.value) == ("outside", "outside")
    del LOCAL.value
    VARIABLE.reset(token)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("names", ["a", "abc"], ids=["one task", "several tasks"])
def test_values_of_a_task_are_invisible_beside_it_and_after_it(transactional_db, names):
    seen = []

    def get_values():
        return VARIABLE.get(None), getattr(LOCAL, "value", None)

    def task(name):
        seen.append(get_values())
        VARIABLE.set(name)
        LOCAL.value = name
        for number in range(2):
            # Where others run meanwhile, if there are others.
            select(number)
            seen.append(get_values())

    def run():
        batching.run([partial(task, name) for name in names])

    for _ in range(2):
        run()
        assert seen == [(None, None)] * len(names) + [(name, name) for name in names] * 2
        assert get_values() == ("outside", "outside")
        seen.clear()


class Held:
    """What a task has."""


def test_nothing_of_a_task_stays_with_its_greenlet(transactional_db):
    kept = []

    def task(held):
        VARIABLE.set(held)
        select(1)

    for _ in range(2):
        held = [Held() for _ in range(3)]
        kept += map(weakref.ref, held)
        batching.run([partial(task, each) for each in held])
        del held
    gc.collect()
    assert [each() for each in kept] == [None] * 6


def test_greenlet_of_a_task_that_was_killed_is_not_used_again(transactional_db, caplog):
    killed = []

    def ends():
        killed.append(getcurrent())
        raise GreenletExit

    batching.run([ends, lambda: select(1)])
    assert (killed[0].dead, caplog.messages) == (True, ["A task failed"])
    results = []
    batching.run([lambda: results.append(select(2))] * 3)
    assert results == [2, 2, 2]


@own_session
def test_lost_connection_is_lost_for_all_tasks_and_made_anew(transactional_db):
    results = []
    select(1)
    end_connection()
    batching.run([expect(OperationalError, results, partial(select, number)) for number in range(3)])
    assert [type(cause) for cause in results] == [psycopg.errors.AdminShutdown] * 3
    connection.close_if_unusable_or_obsolete()
    batching.run([lambda: results.append(select(1))] * 2)
    assert results[3:] == [1, 1]


def test_connection_that_a_task_closed_is_made_anew(transactional_db):
    results = []
    batching.run([lambda: results.append(select(1)), connection.close])
    assert results == [1]


@own_session
def test_statements_that_the_server_was_made_to_forget_are_prepared_anew(transactional_db):
    results = []
    tasks = [lambda: results.append(select(1)), lambda: results.append(connection.run(("SELECT 'text'", [])))]
    batching.run(tasks)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    batching.run(tasks)
    assert results == [1, [[("text",)]]] * 2


def test_longer_values_than_a_socket_takes_at_once(transactional_db):
    long, results = "x" * 4_000_000, []
    batching.run([lambda: results.append(connection.run(("SELECT %s::text", [long])))] * 4)
    assert results == [[[(long,)]]] * 4


# --- Sharing a transaction

TRANSACTION = ("SELECT pg_current_xact_id()::text", [])


@pytest.mark.parametrize(("shared", "transactions"), [(True, 1), (False, 3)])
def test_only_those_that_may_share_a_transaction_do(transactional_db, shared, transactions):
    results = []
    batching.run([lambda: results.extend(connection.run(TRANSACTION, shared_transaction=shared))] * 3)
    assert (len(results), len({number for ((number,),) in results})) == (3, transactions)


def test_those_that_share_a_transaction_do_not_share_its_error(transactional_db, owner):
    results = []
    add = partial(connection.run, shared_transaction=True)
    batching.run(
        [
            lambda: results.extend(add((INSERT, [owner, "first"]))),
            expect(IntegrityError, results, partial(add, (INSERT, [owner, "gone"]), (INSERT, [owner, ""]))),
            lambda: results.extend(add((INSERT, [owner, "third"]), ("SELECT 3", []))),
        ],
    )
    assert [type(part) for part in results] == [list, psycopg.errors.CheckViolation, list, list]
    assert results[0::2] == [[("first",)], [("third",)]]
    assert connection.run(("SELECT item FROM orders_order ORDER BY item", [])) == [[("first",), ("third",)]]


def test_shared_transaction_is_shared_with_no_others(sizes):
    results = []
    alone = lambda: results.append(connection.run(TRANSACTION))  # noqa: E731
    shared = lambda: results.append(connection.run(TRANSACTION, shared_transaction=True))  # noqa: E731
    batching.run([alone, shared, alone, shared])
    assert (len(set(map(repr, results))), sizes) == (3, [4])
    assert results[1] == results[3]


@pytest.mark.parametrize("shared", [True, False])
def test_error_at_the_end_of_a_transaction_stays_with_its_task(transactional_db, owner, shared):
    """Foreign keys are checked when the transaction ends, behind its last statement."""
    results = []
    add = partial(connection.run, shared_transaction=shared)
    wrong = (INSERT, [0, "no user"])
    batching.run(
        [
            lambda: results.extend(add((INSERT, [owner, "first"]))),
            expect(IntegrityError, results, partial(add, wrong)),
            expect(IntegrityError, results, partial(add, ("SELECT 1", []), wrong, ("SELECT 2", []))),
            lambda: results.extend(add((INSERT, [owner, "fourth"]))),
        ],
    )
    assert [type(part) for part in results if type(part) is not list] == [psycopg.errors.ForeignKeyViolation] * 2
    assert connection.run(("SELECT item FROM orders_order ORDER BY item", [])) == [[("first",), ("fourth",)]]
    assert select(7) == 7
