"""The SQL of a queryset, for statements that are built around it, and the rows that such statements give."""

from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet


def compile_queryset(rows: QuerySet[Any]) -> tuple[str, Sequence[Any]]:
    """The SQL and its parameters, also where Django sees that no row can match.

    Django's own `sql_with_params` raises EmptyResultSet then: for `none()`, an empty `__in`, a number that the column
    cannot hold.
    """
    return rows.query.get_compiler(DEFAULT_DB_ALIAS, elide_empty=False).as_sql()


def fetch_rows(sql: str, params: Sequence[Any] | None = None, using: str = DEFAULT_DB_ALIAS) -> list[Any]:
    """The rows that a statement gives."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()
