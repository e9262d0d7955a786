"""Statements that record an idempotency key together with the row that was added under it.

Replaces: the lock, the look-up and the record of a key (config.api.writing.idempotency), three statements in a
transaction. Buys: the row, its key and the hold of its user are one statement, which waits for no other request.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from rest_framework.response import Response

from config.api.principal import Principal
from config.api.writing.idempotency import RECORD_COLUMNS, IdempotencyKey
from config.fastpath.compiled_query import BindParameter, CompiledQuery
from config.fastpath.postgresql.prepared_statements import Statement
from config.models import IdempotencyRecord

_RECORDS = IdempotencyRecord._meta.db_table
_SEEN = f"SELECT FROM {_RECORDS} WHERE user_id = %s AND operation = %s AND key = %s"
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


def get_seen(key: IdempotencyKey) -> Statement:
    """Selects a row when the key was used before."""
    return _SEEN, key[:3]


def get_user_guard(principal: Principal) -> Statement:
    """A guard (see DeferredInsert) that has a row when the user is there; it is kept from being removed meanwhile."""
    return f"WITH guard AS ({_get_user_sql()} FOR KEY SHARE SKIP LOCKED)", [principal.user.pk]


def get_key_guard(key: IdempotencyKey, response: Response, row: Model) -> Statement:
    """A guard (see DeferredInsert) that has a row when the key is recorded with the response.

    It has none where the key was used meanwhile, where it is in use, and where its user is being removed.
    """
    return _get_key_sql(), [key.lock_number, key.user_id, *key.get_record(response, row)]


def fetch_replay(key: IdempotencyKey) -> Response | None:
    """The stored response of a key, if there is one.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REUSED.
    """
    records: Sequence[Any] = _get_look_up().fetch_instances(user_id=key.user_id, operation=key.operation, key=key.key)
    return key.build_replay(records[0]) if records else None


@cache
def _get_look_up() -> CompiledQuery:
    known_by = {name: BindParameter(name) for name in ("user_id", "operation", "key")}
    return CompiledQuery(IdempotencyRecord.objects.filter(**known_by).order_by())


@cache
def _get_user_sql() -> str:
    """Selects a user that is there, by id."""
    users = get_user_model()._default_manager.filter(pk=BindParameter("user_id")).order_by().values("pk")
    sql: str = users.query.sql_with_params()[0]
    return sql


@cache
def _get_key_sql() -> str:
    return _GUARD.format(user=_get_user_sql(), records=_RECORDS, columns=", ".join(RECORD_COLUMNS))
