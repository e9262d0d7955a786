"""The look-up of a credential that counts its request in the same statement.

Replaces: `CredentialLookup.find` and `count_request` of config.api.limits.quotas, two statements. Buys: one round trip
of each authenticated request, and the compilation of its query.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import Error, connection

from config.api.limits import counters
from config.api.limits.quotas import CredentialLookup, is_counted
from config.fastpath.compiled_query import BindParameter, CompiledQuery
from config.postgresql.transactions import is_unavailable

# Where a request keeps what the look-up of its credential counted: the key, and its usage.
_COUNTED = "config.fastpath.counted"
_DECREMENT = f'UPDATE config_counter SET count = count - 1 WHERE key = %s AND "window" = {counters.WINDOW}'  # noqa: S608 - of constants


@lru_cache(maxsize=64)
def _compile(lookup: CredentialLookup, *names: str) -> tuple[CompiledQuery, CompiledQuery]:
    """The look-up of a kind of credential, alone and with the count of the request."""
    rows = lookup.build_queryset(**{name: BindParameter(name) for name in names}).order_by()
    return CompiledQuery(rows), CompiledQuery(rows, _count_with, shared_transaction=False)


def _count_with(sql: str) -> str:
    """A statement that also counts for the row of a look-up, and gives the usage behind its columns."""
    increment = counters.INCREMENT.format(keys="SELECT 'quota:' || principal_id FROM credential")
    return f"""
        WITH credential AS ({sql}), usage (key, count, reset) AS ({increment})
        SELECT credential.*, count, reset FROM credential, usage
    """  # noqa: S608 - of constants


def find(original: Any) -> Callable[..., Any]:
    """Takes the place of `CredentialLookup.find`. What it counts is taken back where the credential is refused."""

    def fast_find(self: CredentialLookup, request: Any, **values: Any) -> Any:
        look_up, look_up_and_count = _compile(self, *values)
        counts = request and settings.RATE_LIMIT_PRINCIPAL and _COUNTED not in request.META and is_counted(request)
        found = None
        try:
            found = look_up_and_count.first(**values) if counts else look_up.first(**values)
        except Error as error:
            if not (counts and is_unavailable(error)):
                raise
            # A standby can be read, though it takes no counts.
            found = look_up.first(**values)
        if found is None:
            return None
        row, usage = found
        if usage:
            request.META[_COUNTED] = (f"quota:{row.principal_id}", counters.Usage(*usage))
        return row

    return fast_find


def count_request(original: Callable[..., Any]) -> Callable[..., Any]:
    """Takes the place of `count_request`: what the look-up counted is not counted again."""

    def fast_count_request(request: Any, key: str, limit: int) -> counters.Usage | None:
        counted = request.META.pop(_COUNTED, None)
        if counted and counted[0] == key:
            usage: counters.Usage = counted[1]
            return usage
        if counted:
            # The credential was found, and refused after all.
            with connection.cursor() as cursor:
                cursor.execute(_DECREMENT, [counted[0]])
        return original(request, key, limit)

    return fast_count_request
