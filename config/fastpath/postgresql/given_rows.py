"""Statements that take any number of rows at once, so that those of several requests are one.

Replaces: a statement for each request, each with a transaction of its own where it locks rows. Buys: PostgreSQL begins,
plans, locks and wakes up once for all of them, and triggers of statements run once.

Such a statement has one parameter for all of its values: the rows, as JSON (`GivenRowsDumper`). It numbers them, and
tells in its last column which of them a result belongs to.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NUMBER = "given_number"


class GivenRows(tuple[Mapping[str, object], ...]):
    """The rows of a statement, each by the names of its columns."""

    __slots__ = ()


def build_given(columns: Mapping[str, str]) -> str:
    """A common table expression `given` of the rows, which PostgreSQL keeps only where it is read more than once.

    Args:
        columns: the names of its columns, each with its type.
    """
    defined = ", ".join(f'"{name}" {kind}' for name, kind in {NUMBER: "integer", **columns}.items())
    return f"given AS (SELECT * FROM json_to_recordset(%s) AS given ({defined}))"  # noqa: S608 - of names


def bind_given(sql: str, names: Iterable[str | None]) -> str:
    """SQL whose placeholders are columns of `given`.

    Args:
        sql: with `%s` for each value.
        names: of the columns, in the order of the placeholders; None for one that stays.
    """
    first, *parts = sql.split("%s")
    columns = ["%s" if name is None else f'given."{name}"' for name in names]
    return first + "".join(column + part for column, part in zip(columns, parts, strict=True))


def join(values: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of a statement that has the rows of several.

    Args:
        values: of each: first its rows, then what is the same in all.
    """
    return [GivenRows(row for rows, *_ in values for row in rows), *values[0][1:]]
