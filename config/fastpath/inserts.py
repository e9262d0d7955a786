"""Rows that are added by one statement, once the response about them is made.

Replaces: `save()` in a transaction, with the record of an idempotency key. Buys: a POST waits twice for the database
instead of five to seven times, and several POSTs share a COMMIT. A failure before the statement leaves no row.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Field, Model
from django.db.models.base import ModelState
from django.db.models.sql import InsertQuery
from rest_framework.response import Response

from config.api.principal import Principal
from config.api.writing.idempotency import RECORD_COLUMNS, IdempotencyKey, StoredAnswer
from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.statements import NUMBER, GivenRows, bind_given, build_given
from config.fastpath.queries import BindParameter, Row
from config.http.request_state import RequestState
from config.models import IdempotencyRecord
from config.postgresql.compiling import compile_queryset
from config.postgresql.events import get_rows_actors, get_tracked
from config.postgresql.new_rows import compile_default
from config.postgresql.statements import build_actor
from config.postgresql.transactions import COMMIT_AT_ONCE
from config.postgresql.visibility import PENDING, REMOVED

_RECORDS = IdempotencyRecord._meta.db_table
# All in one statement, which never waits for who uses a key or removes a user. The index of the keys sees also what
# was added after the snapshot of the statement: of two that add a key, one does. So it is of two given rows, too.
_GUARD = """
alone AS MATERIALIZED (
    SELECT *, pg_try_advisory_xact_lock(guard_lock) AS guard_locked
    FROM (SELECT DISTINCT ON (guard_lock) * FROM given ORDER BY guard_lock, given_number) AS given
), present AS MATERIALIZED (
    SELECT given.* FROM alone AS given
    CROSS JOIN LATERAL ({user} AND given.guard_locked FOR KEY SHARE SKIP LOCKED) AS present
), recorded AS (
    INSERT INTO {records} ({columns}) SELECT {values} FROM present
    ON CONFLICT (key, user_id, operation) DO NOTHING RETURNING key, user_id, operation
), guard AS (
    SELECT present.* FROM present JOIN recorded
    ON (guard_key, guard_user_id, guard_operation) = (recorded.key, recorded.user_id, recorded.operation)
)
"""
_RECORD_TYPES = dict(
    zip(RECORD_COLUMNS, ("bigint", "text", "text", "bytea", "bigint", "integer", "text", "text"), strict=True)
)


# A response that shows a removed user is left to the reference, which deletes it: the key is new again.
_IS_VISIBLE = f"(({PENDING} AND (answer.owner_id IN {REMOVED} OR answer.owner_ids && ARRAY {REMOVED})) IS NOT TRUE)"
ANSWER_COLUMNS = ", ".join(f"answer.{name}" for name in StoredAnswer._fields)
# The given columns of a key, and the join of its answer with a `credential`, which has the row of a principal. With
# OFFSET 0, each takes one index look-up, whatever number of rows the planner expects.
ANSWER_TYPES = {"operation": "text", "key": "text"}
ANSWER_JOIN = f"""JOIN given USING (given_number) LEFT JOIN LATERAL (
    SELECT {ANSWER_COLUMNS} FROM {_RECORDS} AS answer WHERE answer.user_id = credential.principal_id
    AND answer.operation = given.operation AND answer.key = given.key AND {_IS_VISIBLE} OFFSET 0
) AS answer ON true"""  # noqa: S608 - of constants


def keep_answer(state: RequestState, user_id: int, columns: Row) -> None:
    """Keeps what was read with the credential of a user: the ANSWER_COLUMNS, or nulls."""
    state.answer_read = (user_id, None if columns[0] is None else StoredAnswer(*columns))


def take_answer(state: RequestState, key: IdempotencyKey) -> StoredAnswer | None:
    """The stored answer of a key; None where it is not used yet, or was not read with the credential.

    Then the guard of the row finds the key used, and the reference replays its answer.
    """
    reader, answer = state.answer_read or (None, None)
    state.answer_read = None
    return answer if reader == key.user_id else None


class Guard(NamedTuple):
    """Which of several rows a statement adds (DeferredInsert.commit).

    Attributes:
        types: of the values that it is given for each row.
        sql: common table expressions after `given`, the last of which is `guard`: the rows of `given` to add.
        values: for one row.
    """

    types: Mapping[str, str]
    sql: str
    values: Mapping[str, object]


def get_user_guard(principal: Principal) -> Guard:
    """A guard that lets a row pass when the user is there; the lock prevents its removal."""
    return Guard({"guard_user_id": "bigint"}, _get_user_sql(), {"guard_user_id": principal.user.pk})


def get_key_guard(key: IdempotencyKey, response: Response, row: Model) -> Guard:
    """A guard that lets a row pass when the key is recorded with the response.

    It does not if the key has been used in the meantime, is in use, or its user is being removed.
    """
    types, sql = _get_key_sql()
    record = zip(_RECORD_TYPES, key.get_record(response, row), strict=True)
    return Guard(types, sql, {"guard_lock": key.lock_number} | {f"guard_{name}": value for name, value in record})


@cache
def _get_user_sql() -> str:
    user = f"{_get_user('guard_user_id')} FOR KEY SHARE SKIP LOCKED"
    return f"guard AS (SELECT given.* FROM given CROSS JOIN LATERAL ({user}) AS present)"  # noqa: S608 - of constants


def _get_user(name: str) -> str:
    """Selects a user that is there, by an id that is given under a name."""
    users = get_user_model()._default_manager.filter(pk=BindParameter("user_id")).order_by().values("pk")
    sql, params = compile_queryset(users)
    return bind_given(sql, [name for _ in params])


@cache
def _get_key_sql() -> tuple[Mapping[str, str], str]:
    types = {"guard_lock": "bigint"} | {f"guard_{name}": kind for name, kind in _RECORD_TYPES.items()}
    columns, values = ", ".join(RECORD_COLUMNS), ", ".join(f"guard_{name}" for name in RECORD_COLUMNS)
    user = _get_user("guard_user_id")
    return types, _GUARD.format(user=user, records=_RECORDS, columns=columns, values=values)


# The name under which it is given who adds a row.
_ACTOR = "given_actor"
_LENGTH = re.compile(r"\([^)]*\)")


@dataclass(frozen=True, slots=True)
class DeferredInsert:
    """A row that is still to be added, of which all is known, also what the database gives to new rows.

    Attributes:
        row: the model instance.
    """

    row: Model
    _insert: "_Insert"
    _alias: str

    def commit(self, guard: Guard) -> bool:
        """Adds the row by one statement, in a transaction that others may share. Returns whether it did.

        Args:
            guard: says whether to add the row.
        """
        insert, columns = self._insert, vars(self.row)
        values = {**guard.values, **{name: columns.get(name) for name in insert.types}}
        if insert.tells_actors:
            values[_ACTOR] = build_actor()
        given = GivenRows([values])
        statement = insert.get_statement(guard)
        added = get_connection(self._alias).run(statement, [given], shared_transaction=True, is_durable=True)
        self.row._state.adding = not added
        return bool(added)


def reserve(model: type[Model], values: Mapping[str, object], alias: str) -> DeferredInsert:
    """Takes an id and the database's defaults for a new row.

    Args:
        model: a row of it is added by one INSERT and nothing else. A test checks the service's models.
        values: by names of columns, and no expressions.
        alias: of the database.
    """
    insert = _get_insert(model, frozenset(values), alias)
    (reserved,) = get_connection(alias).run(*insert.take_defaults, shared_transaction=True)
    row = model.__new__(model)
    attributes = vars(row)
    attributes.update(values, _state=ModelState())
    for field in insert.python_defaults:
        attributes[field.attname] = field.get_default()
    attributes.update(zip(insert.default_names, reserved[:-1], strict=True))
    row._state.db = alias
    return DeferredInsert(row, insert, alias)


@dataclass(frozen=True, slots=True)
class _Insert:
    """The INSERT of a row of which some columns are given.

    Attributes:
        take_defaults: gives what the database gives to a new row, for any number of rows.
        default_names: the names of these columns.
        python_defaults: the fields whose defaults Python gives.
        sql: the common table expression `added`, of the rows of `guard`, and what tells which these are.
        types: of the values that are given for each row, without their lengths: a cast to a type with a length cuts off
            what is longer.
        tells_actors: whether who adds a row is given with it.
    """

    take_defaults: tuple[str, Sequence[Any]]
    default_names: Sequence[str]
    python_defaults: Sequence[Field]
    sql: str
    types: Mapping[str, str]
    tells_actors: bool
    _statements: dict[str, str] = dataclasses.field(default_factory=dict)

    def get_statement(self, guard: Guard) -> str:
        """The whole statement behind a guard."""
        found = self._statements.get(guard.sql)
        if found is None:
            actors = {_ACTOR: "json"} if self.tells_actors else {}
            found = f"WITH {build_given({**guard.types, **self.types, **actors})}, {guard.sql}, {self.sql}"
            self._statements[guard.sql] = found
        return found


@lru_cache(maxsize=1024)
def _get_insert(model: Any, names: frozenset[str], alias: str) -> _Insert:
    connection, meta = get_connection(alias), model._meta
    fields, quote = meta.local_concrete_fields, connection.ops.quote_name
    from_database = [field for field in meta.db_returning_fields if field.attname not in names]
    compiler = InsertQuery(model).get_compiler(connection=connection)
    compiled = [compile_default(field, compiler) for field in from_database]
    selected = ", ".join([*(sql for sql, _ in compiled), NUMBER])
    columns = ", ".join(quote(field.column) for field in fields)
    values = ", ".join(quote(field.attname) for field in fields)
    row_id = f"guard.{quote(meta.pk.attname)}"
    primary_key = f"{quote(meta.pk.column)} = {row_id}"
    tells_actors = settings.EVENTS and any(each.model is model for each in get_tracked())
    # Each row's own, by its id, for the trigger, which runs when the statement has ended.
    actors = (
        f" WHERE (SELECT set_config('{get_rows_actors(model)}', json_object_agg({row_id}, {_ACTOR})::text, true)"  # noqa: S608 - of columns
        " FROM guard) IS NOT NULL"
    )
    return _Insert(
        (
            # Others read in its transaction; no INSERT may share it, and none does, since what is logged comes last.
            # An id that a crash takes back was no row's: the COMMIT of its row waits for all of the WAL before it.
            f"WITH {build_given({})} SELECT {selected} FROM given WHERE {COMMIT_AT_ONCE}",  # noqa: S608 - of columns
            [GivenRows([{}]), *(param for _, params in compiled for param in params)],
        ),
        [field.attname for field in from_database],
        [field for field in fields if field.attname not in names and field not in from_database],
        f"added AS (INSERT INTO {quote(meta.db_table)} ({columns}) SELECT {values} FROM guard"  # noqa: S608 - of columns
        f" RETURNING {quote(meta.pk.column)}) SELECT given_number FROM guard JOIN added ON added.{primary_key}"
        f"{actors if tells_actors else ''}",
        {field.attname: _LENGTH.sub("", field.db_type(connection)) for field in fields},
        tells_actors,
    )
