"""Requests that one worker runs side by side ask the database together, and have nothing else to do with each other."""

import asyncio
import json
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from time import monotonic

import psycopg
import pytest
from django.db import DataError, IntegrityError, OperationalError, ProgrammingError, connection, transaction

from accounts import passwords
from accounts.services import create_api_key
from config.api.principal import SCOPES
from config.api.versions import usage
from config.fastpath import batching
from config.server.rsgi import MOST_TOGETHER, Application
from payments.models import Payment
from tests.conftest import PASSWORD

PRESENT = ContextVar("present")
INSERT = "INSERT INTO orders_order (user_id, item, qty) VALUES (%s, %s, 1) RETURNING item"


class Asked:
    """Asks the database, and remembers how many jobs asked at once."""

    def __init__(self):
        self.jobs = []

    def __call__(self, groups):
        self.jobs.append(len(groups))
        return connection.run_each(groups)


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture
def owner(make_user):
    return make_user().pk


def value(number):
    ((found,),) = connection.run(("SELECT %s::int", [number]))[0]
    return found


def caught(error, found, job):
    """A job that must raise the error, which is put with what was found."""

    def run():
        with pytest.raises(error) as raised:
            job()
        found.append(raised.value.__cause__)

    return run


def end_connection():
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])


def test_each_job_gets_its_own_answers(transactional_db, asked):
    found = {}

    def job(number):
        found[number] = [value(10 * number + step) for step in range(number)]

    batching.run([partial(job, number) for number in range(1, 6)], asked)
    assert found == {number: [10 * number + step for step in range(number)] for number in range(1, 6)}
    assert asked.jobs == [5, 4, 3, 2, 1]


def test_several_statements_of_a_job_are_one_transaction(transactional_db, asked, owner):
    found = []
    fails = partial(connection.run, (INSERT, [owner, "gone"]), (INSERT, [owner, ""]))
    keeps = partial(connection.run, (INSERT, [owner, "kept"]), ("SELECT 1", []))
    batching.run([caught(IntegrityError, found, fails), keeps, lambda: found.append(value(7))], asked)
    assert isinstance(found[0], psycopg.errors.CheckViolation)
    assert found[1] == 7
    assert connection.run(("SELECT item FROM orders_order", [])) == [[("kept",)]]
    assert asked.jobs == [3]


def test_one_job_asks_alone(transactional_db, asked):
    found = []
    batching.run([lambda: found.append(value(1))], asked)
    assert (found, asked.jobs) == ([1], [])


def test_error_is_of_the_job_that_made_it(transactional_db, asked):
    found = []
    wrong = partial(connection.run, ("SELECT 1 / %s::int", [0]))
    batching.run(
        [lambda: found.append(value(1)), caught(DataError, found, wrong), lambda: found.append(value(3))], asked
    )
    assert (found[0], found[2]) == (1, 3)
    assert isinstance(found[1], psycopg.errors.DivisionByZero)
    assert connection.is_usable()


@pytest.mark.parametrize(
    ("error", "statement"),
    [
        (DataError, ("SELECT %s::text", ["\0"])),
        (UnicodeEncodeError, ("SELECT %s::text", ["\ud800"])),
        (ProgrammingError, ("SELECT %s", [object()])),
        (ProgrammingError, ("SELECT nowhere", [])),
    ],
)
@pytest.mark.parametrize("may_share", [True, False])
def test_what_cannot_be_sent_is_the_error_of_one_job(transactional_db, asked, error, statement, may_share):
    found = []
    wrong = partial(connection.run, ("SELECT 1", []), statement, may_share=may_share)
    batching.run([lambda: found.append(value(1)), caught(error, [], wrong), lambda: found.append(value(3))], asked)
    assert (found, asked.jobs) == ([1, 3], [3])
    assert connection.is_usable()


def test_job_that_raises_ends_alone(transactional_db, asked, caplog):
    found = []

    def fails():
        value(1)
        raise SystemExit

    batching.run([fails, lambda: found.extend((value(2), value(3)))], asked)
    assert (found, asked.jobs) == ([2, 3], [2, 1])
    assert caplog.messages == ["A job failed"]


def test_nothing_comes_between_the_statements_of_a_transaction(transactional_db, asked, owner):
    seen = []

    def write(item):
        with transaction.atomic():
            for number in range(2):
                connection.run((INSERT, [owner, f"{item}{number}"]))
                seen.append(item)
        value(0)

    batching.run([partial(write, "a"), partial(write, "b"), lambda: seen.append(value(7))], asked)
    assert seen == ["a", "a", "b", "b", 7]
    assert asked.jobs == [3]
    assert connection.run(("SELECT count(*) FROM orders_order", [])) == [[(4,)]]


def test_nothing_comes_between_what_is_undisturbed(transactional_db, asked):
    seen = []

    def job(name):
        with suppress(DataError), batching.undisturbed():
            for _ in range(2):
                value(1)
                seen.append(name)
            connection.run(("SELECT 1 / %s::int", [0]))
        value(1)
        seen.append(name)

    batching.run([partial(job, "a"), partial(job, "b")], asked)
    assert seen == ["a", "a", "b", "b", "a", "b"]
    assert asked.jobs == [2]


def test_what_a_job_puts_into_its_context_is_its_own(transactional_db, asked):
    found = []

    def job(name):
        assert PRESENT.get(None) is None
        PRESENT.set(name)
        value(1)
        found.append(PRESENT.get())

    batching.run([partial(job, name) for name in "abc"], asked)
    assert found == ["a", "b", "c"]
    assert PRESENT.get(None) is None


def test_connection_that_is_lost_is_lost_for_all_and_begins_anew(transactional_db, asked):
    found = []
    value(1)
    end_connection()
    batching.run([caught(OperationalError, found, partial(value, number)) for number in range(3)], asked)
    assert [type(cause) for cause in found] == [psycopg.errors.AdminShutdown] * 3
    connection.close_if_unusable_or_obsolete()
    batching.run([lambda: found.append(value(1))] * 2, asked)
    assert found[3:] == [1, 1]


def test_connection_that_a_job_closed_begins_anew(transactional_db, asked):
    found = []
    batching.run([lambda: found.append(value(1)), connection.close], asked)
    assert found == [1]


def test_statements_that_the_server_was_made_to_forget_are_prepared_anew(transactional_db, asked):
    found = []
    jobs = [lambda: found.append(value(1)), lambda: found.append(connection.run(("SELECT 'text'", [])))]
    batching.run(jobs, asked)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    batching.run(jobs, asked)
    assert found == [1, [[("text",)]]] * 2


def test_longer_values_than_a_socket_takes_at_once(transactional_db, asked):
    long, found = "x" * 4_000_000, []
    batching.run([lambda: found.append(connection.run(("SELECT %s::text", [long])))] * 4, asked)
    assert found == [[[(long,)]]] * 4


# --- Sharing a transaction

TRANSACTION = ("SELECT pg_current_xact_id()::text", [])


@pytest.mark.parametrize(("may_share", "transactions"), [(True, 1), (False, 3)])
def test_only_those_that_may_share_a_transaction(transactional_db, asked, may_share, transactions):
    found = []
    batching.run([lambda: found.extend(connection.run(TRANSACTION, may_share=may_share))] * 3, asked)
    assert (len(found), len({number for ((number,),) in found})) == (3, transactions)


def test_those_that_shared_a_transaction_do_not_share_its_error(transactional_db, asked, owner):
    found = []
    add = partial(connection.run, may_share=True)
    batching.run(
        [
            lambda: found.extend(add((INSERT, [owner, "first"]))),
            caught(IntegrityError, found, partial(add, (INSERT, [owner, "not kept"]), (INSERT, [owner, ""]))),
            lambda: found.extend(add((INSERT, [owner, "third"]), ("SELECT 3", []))),
        ],
        asked,
    )
    assert [type(part) for part in found] == [list, psycopg.errors.CheckViolation, list, list]
    assert found[0::2] == [[("first",)], [("third",)]]
    assert connection.run(("SELECT item FROM orders_order ORDER BY item", [])) == [[("first",), ("third",)]]


def test_transaction_that_is_shared_is_no_other_ones(transactional_db, asked):
    found = []
    alone = [lambda: found.append(connection.run(TRANSACTION))] * 2
    shared = [lambda: found.append(connection.run(TRANSACTION, may_share=True))] * 2
    batching.run([alone[0], shared[0], alone[1], shared[1]], asked)
    assert (len(set(map(repr, found))), asked.jobs) == (3, [4])
    assert found[1] == found[3]


@pytest.mark.parametrize("may_share", [True, False])
def test_error_at_the_end_of_a_transaction_is_of_the_job_that_made_it(transactional_db, asked, owner, may_share):
    """Foreign keys are looked at when the transaction ends, behind its last statement."""
    found = []
    add = partial(connection.run, may_share=may_share)
    batching.run(
        [
            lambda: found.extend(add((INSERT, [owner, "first"]))),
            caught(IntegrityError, found, partial(add, (INSERT, [0, "nobody's"]))),
            caught(IntegrityError, found, partial(add, ("SELECT 1", []), (INSERT, [0, "nobody's"]), ("SELECT 2", []))),
            lambda: found.extend(add((INSERT, [owner, "fourth"]))),
        ],
        asked,
    )
    assert [type(part) for part in found if type(part) is not list] == [psycopg.errors.ForeignKeyViolation] * 2
    assert connection.run(("SELECT item FROM orders_order ORDER BY item", [])) == [[("first",), ("fourth",)]]
    assert value(7) == 7


# --- Requests


class Received:
    """A request as Granian hands it over, and the answer."""

    def __init__(self, path, key="", body=None, **headers):
        self.path, self.query_string, self.method = path, "", "GET" if body is None else "POST"
        self.sent = b"" if body is None else json.dumps(body).encode()
        self.headers = {"host": "testserver", "content-length": str(len(self.sent)), "content-type": "application/json"}
        self.headers |= {"x-api-key": key} if key else {}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.client, self.server, self.authority = "127.0.0.1:40000", "127.0.0.1:8000", "testserver"
        self.http_version, self.scheme = "1.1", "http"

    async def __call__(self):
        return self.sent

    def response_bytes(self, status, headers, body):
        self.status, self.headers, self.body = status, dict(headers), json.loads(body)


def answered_together(*requests):
    async def receive_all():
        application = Application()
        application.__rsgi_init__(asyncio.get_running_loop())
        await asyncio.gather(*(application.__rsgi__(request, request) for request in requests))

    asyncio.run(receive_all())
    return requests


def test_requests_that_arrive_together_ask_together(transactional_db, make_user, monkeypatch):
    keys = [create_api_key(make_user(), name="test", scopes=SCOPES) for _ in range(2 * MOST_TOGETHER)]
    waits = []
    original = connection.run_each
    monkeypatch.setattr(connection, "run_each", lambda groups: waits.append(len(groups)) or original(groups))
    found = answered_together(*(Received(f"/api/v1/users/{row.user_id}", key) for row, key in keys))
    assert [request.body["data"]["id"] for request in found] == [row.user_id for row, _ in keys]
    # For credentials, then for users.
    assert waits == [MOST_TOGETHER] * 4


def test_request_of_many_that_is_refused_is_refused_alone(transactional_db, make_user):
    row, key = create_api_key(make_user(), name="test", scopes=SCOPES)
    path = f"/api/v1/users/{row.user_id}"
    requests = answered_together(
        *(Received(path, key), Received(path, "wrong"), Received("/api/v1/users/0", key), Received("/nowhere", key)),
        *(Received("/health/live", ""), Received(path, key)),
    )
    assert [request.status for request in requests] == [200, 401, 404, 404, 200, 200]
    assert len({request.headers["Request-Id"] for request in requests}) == len(requests)


def test_same_key_at_the_same_time_has_one_effect(transactional_db, make_user):
    _, key = create_api_key(make_user(), name="test", scopes=SCOPES)
    same = [Received("/api/v1/payments", key, {"amount": 12.5}, idempotency_key="k") for _ in range(MOST_TOGETHER)]
    other = Received("/api/v1/payments", key, {"amount": 13}, idempotency_key="k")
    first, *others, refused = answered_together(*same[1:], other)
    assert (first.status, refused.status) == (201, 422)
    assert [(request.status, request.body) for request in others] == [(201, first.body)] * len(others)
    (later,) = answered_together(same[0])
    # What was to be added and was not has no part in the answer, nor in its tag.
    assert {frozenset(request.headers) for request in others} == {frozenset(later.headers)}
    assert Payment.objects.count() == 1


@pytest.fixture
def short_waits(transactional_db):
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '500ms'")
    yield
    connection.close()


@pytest.mark.usefixtures("short_waits")
def test_who_is_being_removed_is_waited_for_once(make_user, elsewhere, monkeypatch):
    """A foreign key waits for the lock of a removal, in vain after `lock_timeout`."""
    users = [make_user() for _ in range(3)]
    keys = [create_api_key(user, name="test", scopes=SCOPES)[1] for user in users]
    elsewhere.execute("SELECT FROM users_user WHERE id = %s FOR UPDATE", [users[1].pk])
    # It waits for the user, too.
    monkeypatch.setattr(usage.uses, "write", lambda: None)
    began = monotonic()
    found = answered_together(*(Received("/api/v1/orders", key, {"item": "Tea", "qty": 1}) for key in keys))
    assert [request.status for request in found] == [201, 503, 201]
    assert monotonic() - began < 0.9


def test_no_more_passwords_are_looked_at_than_the_limit(transactional_db, make_user, one_minute, settings, monkeypatch):
    owner, looks = make_user(password=PASSWORD), []
    monkeypatch.setitem(passwords.prove.__kwdefaults__, "check", lambda *_: bool(looks.append(1)))
    body = {"email": owner.email, "password": "wrong"}
    found = answered_together(*(Received("/api/login", body=body) for _ in range(MOST_TOGETHER)))
    limit = settings.RATE_LIMIT_LOGIN_ACCOUNT
    assert [request.status for request in found] == [401] * limit + [429] * (MOST_TOGETHER - limit)
    assert len(looks) == limit
