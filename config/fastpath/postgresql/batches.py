"""Statements of several requests, as they are sent together: those that differ in their given rows alone are one.

Replaces: a statement for each request, each with a transaction of its own where it locks rows. Buys: PostgreSQL begins,
plans, locks and wakes up once for all of them, and triggers of statements run once.

Such a statement has one parameter for all of its values: the rows, as JSON (`GivenRowsDumper`). It numbers them, and
tells in its last column which of them a result belongs to.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

NUMBER = "given_number"

Rows = list[tuple[Any, ...]]


class GivenRows(tuple[Mapping[str, object], ...]):
    """The rows of a statement, each by the names of its columns."""

    __slots__ = ()


class Statement(NamedTuple):
    """A statement of a request.

    Attributes:
        sql: with `%s` for each value.
        values: given rows first, if it has any.
        shared_transaction: whether others may run in the same transaction. It costs less than one for each; but of two
            that lock the same rows in different orders one would fail.
        is_alone: whether it is made one with no other statement, and shares no transaction.
    """

    sql: str
    values: Sequence[Any]
    shared_transaction: bool = False
    is_alone: bool = False


class Unit(NamedTuple):
    """What is sent of one statement, or of several that are made one.

    Attributes:
        indexes: of the statements, in the order of their given rows.
        statement: of all of them.
    """

    indexes: Sequence[int]
    statement: Statement


def unite(statements: Sequence[Statement]) -> list[Unit]:
    """What is sent of statements, in the order of the first of each unit."""
    alike: dict[object, list[int]] = {}
    for index, statement in enumerate(statements):
        alike.setdefault(_get_form(statement) or index, []).append(index)
    return [Unit(indexes, _join([statements[index] for index in indexes])) for indexes in alike.values()]


def _get_form(statement: Statement) -> object:
    """What statements that can be one have in common; None for one that stays by itself."""
    sql, values, shared_transaction, is_alone = statement
    if is_alone or not values or type(values[0]) is not GivenRows or len(values[0]) != 1:
        return None
    form = (sql, *values[1:], shared_transaction)
    try:
        hash(form)
    except TypeError:
        # A constant such as a list.
        return None
    return form


def _join(statements: Sequence[Statement]) -> Statement:
    first = statements[0]
    if len(statements) == 1:
        return first
    rows = GivenRows(row for statement in statements for row in statement.values[0])
    return first._replace(values=[rows, *first.values[1:]])


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
