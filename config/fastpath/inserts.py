"""Rows that are added by one statement, once the response about them is made.

Replaces: `save()` in a transaction, and the record of an idempotency key beside it. Buys: a POST waits twice for the
database instead of five to seven times, and several of them share a COMMIT. What fails before the statement leaves no
row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any
from wsgiref.types import WSGIEnvironment

from django.contrib.auth import get_user_model
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
from config.fastpath.postgresql.prepared_statements import Statement
from config.models import IdempotencyRecord
from config.postgresql.new_rows import compile_default
from config.postgresql.transactions import has_committed
from config.postgresql.visibility import PENDING, REMOVED

_RECORDS = IdempotencyRecord._meta.db_table
# All in one statement, which never waits for who uses the key or removes the user. The index of the keys sees also what
# was added after the snapshot of the statement: of two that add a key, one does.
_GUARD = """
WITH alone AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(%s) AS locked
), present AS MATERIALIZED (
    {user} AND (SELECT locked FROM alone) FOR KEY SHARE SKIP LOCKED
), guard AS (
    INSERT INTO {records} ({columns}, replays)
    SELECT %s, %s, %s, %s::bytea, %s::bigint, %s::integer, %s, %s, 0 FROM present
    ON CONFLICT (key, user_id, operation) DO NOTHING RETURNING true
)
"""


# Where a request keeps the key whose answer shall be read with its credential, and whose answer was read.
ASKED, _READ = "config.fastpath.asked", "config.fastpath.read"
ANSWER_COLUMNS = ", ".join(f"answer.{name}" for name in StoredAnswer._fields)
# What shows a removed user is left to the reference, which takes it away: the key is new again.
_IS_VISIBLE = f"(({PENDING} AND (answer.owner_id IN {REMOVED} OR answer.owner_ids && ARRAY {REMOVED})) IS NOT TRUE)"
# Behind a table `credential`, which has the row of a principal.
ANSWER_JOIN = (
    f"LEFT JOIN {_RECORDS} AS answer"
    f" ON answer.user_id = credential.principal_id AND answer.operation = %s AND answer.key = %s AND {_IS_VISIBLE}"
)
ANSWER_PARAMS = (BindParameter("operation"), BindParameter("key"))
_FETCH_ANSWER = f"""
SELECT {ANSWER_COLUMNS} FROM {_RECORDS} AS answer
WHERE answer.user_id = %s AND operation = %s AND key = %s AND {_IS_VISIBLE}
"""  # noqa: S608 - of constants


def keep_answer(environ: WSGIEnvironment, user_id: int, columns: Row) -> None:
    """Keeps what was read with the credential of a user: the ANSWER_COLUMNS, or nulls."""
    environ[_READ] = (user_id, None if columns[0] is None else StoredAnswer(*columns))


def take_answer(environ: WSGIEnvironment, key: IdempotencyKey) -> StoredAnswer | None:
    """The stored answer of a key; None where it is not used yet."""
    reader, answer = environ.pop(_READ, (None, None))
    if reader == key.user_id:
        found: StoredAnswer | None = answer
        return found
    # The credential is of a kind that is looked up in another way.
    (rows,) = get_connection(DEFAULT_DB_ALIAS).run((_FETCH_ANSWER, key[:3]), shared_transaction=True)
    return StoredAnswer(*rows[0]) if rows else None


def get_user_guard(principal: Principal) -> Statement:
    """A guard (see DeferredInsert) that has a row when the user is there; the lock prevents its removal."""
    return f"WITH guard AS ({_get_user_sql()} FOR KEY SHARE SKIP LOCKED)", [principal.user.pk]


def get_key_guard(key: IdempotencyKey, response: Response, row: Model) -> Statement:
    """A guard (see DeferredInsert) that has a row when the key is recorded with the response.

    It has none where the key was used meanwhile, where it is in use, and where its user is being removed.
    """
    return _get_key_sql(), [key.lock_number, key.user_id, *key.get_record(response, row)]


@cache
def _get_user_sql() -> str:
    """Selects a user that is there, by id."""
    users = get_user_model()._default_manager.filter(pk=BindParameter("user_id")).order_by().values("pk")
    sql: str = users.query.sql_with_params()[0]
    return sql


@cache
def _get_key_sql() -> str:
    return _GUARD.format(user=_get_user_sql(), records=_RECORDS, columns=", ".join(RECORD_COLUMNS))


# Types whose values Django sends as they are, by the classes of fields.
_UNCHANGED: Mapping[type, type] = {
    models.BigAutoField: int,
    models.CharField: str,
    models.EmailField: str,
    models.TextField: str,
    models.DateTimeField: datetime,
}
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

    def commit(self, guard: Statement) -> bool:
        """Adds the row by one statement, a transaction by itself. Returns whether it did.

        Args:
            guard: the beginning of the statement, with a common table expression `guard` that has a row where the row
                shall be added.
        """
        connection, insert = get_connection(self._alias), self._insert
        before, values = guard
        statement = f"{before} {insert.sql} FROM guard RETURNING 1"
        bound = [*values, *_get_values(self.row, insert.fields, connection)]
        (added,) = connection.run((statement, bound), shared_transaction=True, is_logged=True)
        self.row._state.adding = not added
        if added:
            has_committed.set(True)
        return bool(added)


def reserve(model: type[Model], values: Mapping[str, object], alias: str) -> DeferredInsert:
    """Takes an id and the database's defaults for a new row.

    Args:
        model: of which `supports` says that it can be added so.
        values: by names of columns, and no expressions.
        alias: of the database.
    """
    insert = _get_insert(model, frozenset(values), alias)
    ((reserved,),) = get_connection(alias).run(insert.select_defaults, shared_transaction=True)
    row = model.__new__(model)
    attributes = vars(row)
    attributes.update(values, _state=ModelState())
    for field in insert.python_defaults:
        attributes[field.attname] = field.get_default()
    attributes.update(zip(insert.default_names, reserved, strict=True))
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
    if any(map(_has_value_of_save, fields)):
        return False
    compiler = InsertQuery(model).get_compiler(alias)
    columns = [field.get_col(meta.db_table) for field in meta.db_returning_fields]
    return bool(columns) and not compiler.get_converters(columns)


def _has_value_of_save(field: Field) -> bool:
    """Whether the value of a field is made when its row is saved, which is after the response."""
    is_automatic = field.generated or getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return is_automatic or type(field).pre_save not in _STOCK_PRE_SAVE


@dataclass(frozen=True, slots=True)
class _Insert:
    """The INSERT of a row of which some columns are given.

    Attributes:
        select_defaults: selects what the database gives to a new row.
        default_names: the names of these columns.
        python_defaults: the fields whose defaults Python gives.
        sql: the INSERT, up to where it would say under which condition.
        fields: whose values it takes, in this order, each with the type of values that are sent as they are.
    """

    select_defaults: Statement
    default_names: Sequence[str]
    python_defaults: Sequence[Field]
    sql: str
    fields: Sequence[tuple[Field, type | None]]


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
    # The types without their lengths: a cast to one with a length cuts off what is longer.
    casts = ", ".join(f"%s::{_LENGTH.sub('', field.db_type(connection))}" for field in fields)
    targets = [field.target_field if type(field) is models.ForeignKey else field for field in fields]
    return _Insert(
        (f"SELECT {', '.join(selected)}", params),
        [field.attname for field in from_database],
        from_python,
        f"INSERT INTO {quote(meta.db_table)} ({columns}) SELECT {casts}",
        [(field, _UNCHANGED.get(type(target))) for field, target in zip(fields, targets, strict=True)],
    )


def _get_values(
    row: models.Model, fields: Sequence[tuple[Field, type | None]], connection: BaseDatabaseWrapper
) -> list[object]:
    columns, adding = vars(row), row._state.adding
    return [
        value
        if type(value := columns.get(field.attname)) is unchanged
        else field.get_db_prep_save(field.pre_save(row, adding), connection)
        for field, unchanged in fields
    ]
