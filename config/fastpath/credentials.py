"""The backends of the fast path for credentials and quotas.

The look-up of a credential counts its request in the same statement, and reads the stored answer of an idempotency key,
so that a replay needs no other; where there are replicas, it tells from which one its user reads. Buys: one round trip
of each authenticated request, and the compilation of its query.
"""

from asyncio import AbstractEventLoop, Task
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection
from rest_framework.permissions import SAFE_METHODS

from config.api.backends import get_backend
from config.api.limits import counters
from config.api.limits.quotas import (
    CredentialBackend,
    CredentialLookup,
    DatabaseQuotas,
    RedisQuotas,
    find_stand_in_for,
    is_counted,
)
from config.api.requests import AnyRequest
from config.fastpath.greenlets import Wakeup, get_request_greenlet, wait
from config.fastpath.inserts import ANSWER_COLUMNS, ANSWER_JOIN, ANSWER_TYPES, keep_answer
from config.fastpath.postgresql.statements import build_given
from config.fastpath.queries import BindParameter, CompiledQuery, get_parameter_types
from config.http.request_state import RequestState, get_state
from config.postgresql.replicas.reads import FETCH_POSITION
from config.postgresql.replicas.watch import goes_on_without_primary
from config.postgresql.transactions import is_unavailable

_DECREMENT = f'UPDATE config_counter SET count = count - 1 WHERE key = %s AND "window" = {counters.WINDOW}'  # noqa: S608 - of constants


# In the order of their keys: two statements that count for the same users cannot deadlock.
_INCREMENT = counters.INCREMENT.format(
    keys="SELECT 'quota:' || principal_id, count(*) FROM credential GROUP BY principal_id ORDER BY 1"
)
# As if the requests of a user had been counted one after the other.
_LATER = "count(*) OVER (PARTITION BY principal_id ORDER BY credential.given_number DESC) - 1"

_POSITION_COLUMN = f"({FETCH_POSITION.format('credential.principal_id')})"


@lru_cache(maxsize=64)
def _compile(
    lookup: CredentialLookup, counts: bool, reads_answer: bool, reads_position: bool, *names: str
) -> CompiledQuery:
    """The look-up of a kind of credential, for any number of requests, and behind its columns what goes with it.

    Args:
        counts: whether it counts the request, and gives the usage.
        reads_answer: whether it gives the stored answer of an idempotency key (config.fastpath.inserts).
        reads_position: whether it gives what is known of the replica that its user reads from.
        names: of the values by which the credential is looked up.
    """
    rows = lookup.build_queryset(**{name: BindParameter(name) for name in names}).using(DEFAULT_DB_ALIAS).order_by()
    given = {**get_parameter_types(rows), **(ANSWER_TYPES if reads_answer else {})}
    usage, columns, tables = "", "credential.*", "credential"
    if counts:
        usage = f", usage (key, count, reset) AS ({_INCREMENT})"
        columns += f", usage.count - ({_LATER}), usage.reset"
        tables += " JOIN usage ON usage.key = 'quota:' || credential.principal_id"
    if reads_answer:
        columns, tables = f"{columns}, {ANSWER_COLUMNS}", f"{tables} {ANSWER_JOIN}"
    if reads_position:
        columns += f", {_POSITION_COLUMN}"

    def wrap_sql(sql: str) -> str:
        # OFFSET 0: one look by index for each of them, whatever the planner thinks of their number. Not MATERIALIZED:
        # PostgreSQL keeps the credentials only where they are counted, too. That takes a sixth of the statement's time.
        return (
            f"WITH {build_given(given)}, credential AS ("  # noqa: S608 - of constants
            f"SELECT found.*, given.given_number FROM given CROSS JOIN LATERAL ({sql} OFFSET 0) AS found){usage} "
            f"SELECT {columns}, credential.given_number FROM {tables}"
        )

    return CompiledQuery(rows, wrap_sql, shared_transaction=not counts, given=given)


class FastCredentials(CredentialBackend):
    """CREDENTIAL_BACKEND. What it counts is taken back where the credential is refused."""

    def find(self, lookup: CredentialLookup, request: AnyRequest | None, **values: object) -> Any:
        if find_stand_in_for(request):
            return super().find(lookup, request, **values)
        # Beside requests, a credential is looked up for its row alone.
        state = get_state(request.META) if request else RequestState()
        asked, state.answer_wanted = state.answer_wanted, None
        counts = _counts_with_credential(request)
        reads_position = bool(settings.REPLICAS) and request is not None and request.method in SAFE_METHODS
        look_up = _compile(lookup, counts, asked is not None, reads_position, *values)
        try:
            found = look_up.first(**values, **(asked or {}))
        except Error as error:
            stand_in = find_stand_in_for(request)
            # Without a primary, to ask again is to wait for a connection.
            may_ask = (counts or reads_position) and (stand_in or not goes_on_without_primary())
            if not (may_ask and is_unavailable(error)):
                raise
            if stand_in:
                return super().find(lookup, request, **values)
            # A standby can be read, though it takes no counts.
            found = _compile(lookup, False, False, False, *values).first(**values)
            counts, asked, reads_position = False, None, False
            state.position_read = ()
        if found is None:
            return None
        row, further = found
        # First comes the row's given_number, last the result's; those in between belong to the credential.
        further = further[1:-1]
        if counts:
            state.counted = (f"quota:{row.principal_id}", counters.Usage(*further[:2]))
        if asked:
            keep_answer(state, row.principal_id, further[2 * counts :])
        if reads_position:
            state.position_read = further[-1] or ()
        return row


def _counts_with_credential(request: AnyRequest | None) -> bool:
    if request is None or not settings.RATE_LIMIT_PRINCIPAL:
        return False
    if not isinstance(get_backend(settings.QUOTA_BACKEND), FastDatabaseQuotas):
        return False
    return get_state(request.META).counted is None and is_counted(request)


class FastDatabaseQuotas(DatabaseQuotas):
    """QUOTA_BACKEND: what the look-up counted is not counted again."""

    def count(self, request: AnyRequest, key: str, limit: int) -> counters.Usage | None:
        state = get_state(request.META)
        counted, state.counted = state.counted, None
        if counted and counted[0] == key:
            usage: counters.Usage = counted[1]
            return usage
        if counted:
            # The credential was found, and refused after all.
            with connection.cursor() as cursor:
                cursor.execute(_DECREMENT, [counted[0]])
        return super().count(request, key, limit)


class FastRedisQuotas(RedisQuotas):
    """QUOTA_BACKEND with QUOTA_URL: the loop runs while Redis counts.

    Requests that come meanwhile are counted together, in the next round trip.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Wakeup, str]] = []
        self._counting: Task[None] | None = None

    def count(self, request: AnyRequest, key: str, limit: int) -> counters.Usage | None:
        runner = get_request_greenlet()
        if runner is None or not limit:
            return super().count(request, key, limit)
        self._waiting.append((Wakeup(), key))
        if self._counting is None or self._counting.done():
            self._counting = runner.engine.loop.create_task(self._count_waiting(runner.engine.loop))
        usage: counters.Usage = wait()
        return usage

    async def _count_waiting(self, loop: AbstractEventLoop) -> None:
        from config.api.limits import redis_counters

        while self._waiting:
            sent, self._waiting = self._waiting, []
            results: Sequence[Any]
            try:
                results = await loop.run_in_executor(None, redis_counters.increment, [key for _, key in sent])
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                results = [error] * len(sent)
            for (wake, _), result in zip(sent, results, strict=True):
                wake(result)
