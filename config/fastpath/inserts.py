"""Rows that are added by one statement, once the response about them is made.

Replaces: `save()` in a transaction, and the record of an idempotency key beside it. Buys: a POST waits twice for the
database instead of five to seven times, and several of them share a COMMIT. What fails before the statement leaves no
row.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.db import DEFAULT_DB_ALIAS, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model, QuerySet, signals
from django.db.models.base import ModelState
from django.db.models.sql import InsertQuery
from rest_framework.response import Response

from config.api.principal import Principal
from config.api.writing.idempotency import RECORD_COLUMNS, IdempotencyKey, StoredAnswer
from config.fastpath.compiled_query import BindParameter, Row
from config.fastpath.postgresql.base import get_connection
from config.fastpath.postgresql.batches import Statement
from config.fastpath.postgresql.given_rows import NUMBER, GivenRows, bind_given, build_given
from config.http.request_state import RequestState
from config.models import IdempotencyRecord
from config.postgresql.compiling import compile_queryset
from config.postgresql.new_rows import compile_default
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
    INSERT INTO {records} ({columns}, replays) SELECT {values}, 0 FROM present
    ON CONFLICT (key, user_id, operation) DO NOTHING RETURNING key, user_id, operation
), guard AS (
    SELECT present.* FROM present JOIN recorded
    ON (guard_key, guard_user_id, guard_operation) = (recorded.key, recorded.user_id, recorded.operation)
)
"""
_RECORD_TYPES = dict(
    zip(RECORD_COLUMNS, ("bigint", "text", "text", "bytea", "bigint", "integer", "text", "text"), strict=True)
)


# What shows a removed user is left to the reference, which takes it away: the key is new again.
_IS_VISIBLE = f"(({PENDING} AND (answer.owner_id IN {REMOVED} OR answer.owner_ids && ARRAY {REMOVED})) IS NOT TRUE)"
ANSWER_COLUMNS = ", ".join(f"answer.{name}" for name in StoredAnswer._fields)
_FETCH_ANSWER = f"""
SELECT {ANSWER_COLUMNS} FROM {_RECORDS} AS answer
WHERE answer.user_id = %s AND operation = %s AND key = %s AND {_IS_VISIBLE}
"""  # noqa: S608 - of constants


# What is given of a key, and what joins its answer with a `credential`, which has the row of a principal. OFFSET 0: one
# look by index for each, whatever the planner thinks of their number.
ANSWER_TYPES = {"operation": "text", "key": "text"}
ANSWER_JOIN = f"""JOIN given USING (given_number) LEFT JOIN LATERAL (
    SELECT {ANSWER_COLUMNS} FROM {_RECORDS} AS answer WHERE answer.user_id = credential.principal_id
    AND answer.operation = given.operation AND answer.key = given.key AND {_IS_VISIBLE} OFFSET 0
) AS answer ON true"""  # noqa: S608 - of constants


def keep_answer(state: RequestState, user_id: int, columns: Row) -> None:
    """Keeps what was read with the credential of a user: the ANSWER_COLUMNS, or nulls."""
    state.answer_read = (user_id, None if columns[0] is None else StoredAnswer(*columns))


def take_answer(state: RequestState, key: IdempotencyKey) -> StoredAnswer | None:
    """The stored answer of a key; None where it is not used yet."""
    reader, answer = state.answer_read or (None, None)
    state.answer_read = None
    if reader == key.user_id:
        found: StoredAnswer | None = answer
        return found
    # The credential is of a kind that is looked up in another way.
    (rows,) = get_connection(DEFAULT_DB_ALIAS).run((_FETCH_ANSWER, key[:3]), shared_transaction=True)
    return StoredAnswer(*rows[0]) if rows else None


class Guard(NamedTuple):
    """Which of several rows a statement adds (DeferredInsert.commit).

    Attributes:
        types: of the values that it is given for each row.
        sql: common table expressions behind `given`, the last of which is `guard`: the rows of `given` that shall be
            added.
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

    It does not where the key was used meanwhile, where it is in use, and where its user is being removed.
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


# Types whose values Django sends as they are, by the classes of fields.
_UNCHANGED: Mapping[type, type] = {
    models.BigAutoField: int,
    models.CharField: str,
    models.EmailField: str,
    models.TextField: str,
    models.DateTimeField: datetime,
}
# JSON carries the values of these as they are, to the statement that adds a row.
_CARRIED = (
    *(models.AutoField, models.BinaryField, models.BooleanField, models.CharField, models.DateField),
    *(models.DecimalField, models.IntegerField, models.TextField, models.UUIDField),
)
# They return the attribute as it is, but for `auto_now` and `auto_now_add`.
_STOCK_PRE_SAVE = {each.pre_save for each in (models.Field, models.DateField, models.DateTimeField, models.TimeField)}
_LENGTH = re.compile(r"\([^)]*\)")


@dataclass(frozen=True, slots=True)
class DeferredInsert:
    """A row that is still to be added, of which all is known, also what the database gives to new rows.

    Attributes:
        row: the model instance.
    """

    row: models.Model
    _insert: "_Insert"
    _alias: str

    def commit(self, guard: Guard) -> bool:
        """Adds the row by one statement, a transaction alone or with those of other requests. Returns whether it did.

        Args:
            guard: says whether the row shall be added.
        """
        connection, insert = get_connection(self._alias), self._insert
        sql = insert.get_statement(guard)
        given = GivenRows([{**guard.values, **_get_values(self.row, insert.fields, connection)}])
        (added,) = connection.run((sql, [given]), shared_transaction=True, is_durable=True)
        self.row._state.adding = not added
        return bool(added)


def reserve(model: type[Model], values: Mapping[str, object], alias: str) -> DeferredInsert:
    """Takes an id and the database's defaults for a new row.

    Args:
        model: of which `supports` says that it can be added so.
        values: by names of columns, and no expressions.
        alias: of the database.
    """
    insert = _get_insert(model, frozenset(values), alias)
    ((reserved,),) = get_connection(alias).run(insert.take_defaults, shared_transaction=True)
    row = model.__new__(model)
    attributes = vars(row)
    attributes.update(values, _state=ModelState())
    for field in insert.python_defaults:
        attributes[field.attname] = field.get_default()
    attributes.update(zip(insert.default_names, reserved[:-1], strict=True))
    row._state.db = alias
    return DeferredInsert(row, insert, alias)


def supports(model: type[Model], names: frozenset[str], alias: str) -> bool:
    """Whether to add a row with values for these columns is one INSERT, and nothing else, that needs no conversion."""
    has_receivers = signals.pre_save.receivers or signals.post_save.receivers
    has_receivers = has_receivers or signals.pre_init.receivers or signals.post_init.receivers
    return not has_receivers and _is_plain(model, names, alias)


@lru_cache(maxsize=1024)
def _is_plain(model: type[Model], names: frozenset[str], alias: str) -> bool:
    meta, manager, fields = model._meta, model._default_manager, model._meta.local_concrete_fields
    if any(getattr(model, name) is not getattr(models.Model, name) for name in ("__init__", "save", "save_base")):
        return False
    if type(manager).create is not models.Manager.create or type(manager.all()).create is not QuerySet.create:
        return False
    if meta.parents or meta.order_with_respect_to or not names <= {field.attname for field in fields}:
        return False
    if any(map(_has_value_of_save, fields)) or not all(map(_is_carried, fields)):
        return False
    compiler = InsertQuery(model).get_compiler(alias)
    columns = [field.get_col(meta.db_table) for field in meta.db_returning_fields]
    return bool(columns) and not compiler.get_converters(columns)


def _is_carried(field: Any) -> bool:
    if type(field) is ArrayField:
        return _is_carried(field.base_field)
    target = field.target_field if type(field) is models.ForeignKey else field
    return isinstance(target, _CARRIED)


def _has_value_of_save(field: Field) -> bool:
    """Whether the value of a field is made when its row is saved, which is after the response."""
    is_automatic = field.generated or getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return is_automatic or type(field).pre_save not in _STOCK_PRE_SAVE


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
        fields: whose values it takes, each with the type of values that are sent as they are.
    """

    take_defaults: Statement
    default_names: Sequence[str]
    python_defaults: Sequence[Field]
    sql: str
    types: Mapping[str, str]
    fields: Sequence[tuple[Field, type | None]]
    _statements: dict[str, str] = dataclasses.field(default_factory=dict)

    def get_statement(self, guard: Guard) -> str:
        """The whole statement behind a guard."""
        found = self._statements.get(guard.sql)
        if found is None:
            found = f"WITH {build_given({**guard.types, **self.types})}, {guard.sql}, {self.sql}"
            self._statements[guard.sql] = found
        return found


@lru_cache(maxsize=1024)
def _get_insert(model: Any, names: frozenset[str], alias: str) -> _Insert:
    connection, meta = get_connection(alias), model._meta
    concrete = meta.local_concrete_fields
    from_database = [field for field in meta.db_returning_fields if field.attname not in names]
    from_python = [field for field in concrete if field.attname not in names and field not in from_database]
    given = [field for field in concrete if field not in from_database]
    query: Any = InsertQuery(model)
    query.insert_values(given, [SimpleNamespace(**{field.attname: None for field in given})], raw=True)
    compiler = query.get_compiler(connection=connection)
    selected: list[str] = []
    params: list[object] = []
    for field in from_database:
        sql, values = compile_default(field, compiler)
        selected.append(sql)
        params += values
    fields, quote = [*from_database, *given], connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    values = ", ".join(quote(field.attname) for field in fields)
    primary_key = f"{quote(meta.pk.column)} = guard.{quote(meta.pk.attname)}"
    targets = [field.target_field if type(field) is models.ForeignKey else field for field in fields]
    return _Insert(
        (
            # Others read in its transaction; no INSERT may share it, and none does, since what is logged comes last.
            # An id that a crash takes back was no row's: the COMMIT of its row waits for all of the WAL before it.
            f"WITH {build_given({})} SELECT {', '.join([*selected, NUMBER])} FROM given WHERE {COMMIT_AT_ONCE}",  # noqa: S608 - of columns
            [GivenRows([{}]), *params],
        ),
        [field.attname for field in from_database],
        from_python,
        f"added AS (INSERT INTO {quote(meta.db_table)} ({columns}) SELECT {values} FROM guard"  # noqa: S608 - of columns
        f" RETURNING {quote(meta.pk.column)}) SELECT given_number FROM guard JOIN added ON added.{primary_key}",
        {field.attname: _LENGTH.sub("", field.db_type(connection)) for field in fields},
        [(field, _UNCHANGED.get(type(target))) for field, target in zip(fields, targets, strict=True)],
    )


def _get_values(
    row: models.Model, fields: Sequence[tuple[Field, type | None]], connection: BaseDatabaseWrapper
) -> dict[str, object]:
    columns, adding = vars(row), row._state.adding
    return {
        field.attname: value
        if type(value := columns.get(field.attname)) is unchanged
        else field.get_db_prep_save(field.pre_save(row, adding), connection)
        for field, unchanged in fields
    }
