"""Statements of several requests, as they are sent together: some of them are one statement."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from config.fastpath.postgresql.given_rows import GivenRows, join

Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]


class Batch(NamedTuple):
    """Statements that take effect together or not at all.

    Attributes:
        shared_transaction: whether other batches may run in the same transaction. It costs less than one for each; but
            of two that lock the same rows in different orders one would fail.
        is_alone: whether it is made one with no other batch.
    """

    statements: Sequence[Statement]
    shared_transaction: bool = False
    is_alone: bool = False


class Unit(NamedTuple):
    """What is sent of one batch; or of several whose statements differ in their given row alone, and are one.

    Attributes:
        indexes: of the batches. Those of several stand in the order of the given rows.
    """

    indexes: Sequence[int]
    statements: Sequence[Statement]
    shared_transaction: bool


def unite(batches: Sequence[Batch]) -> list[Unit]:
    """What is sent of batches, in the order of the first of each unit."""
    alike: dict[object, list[int]] = {}
    for index, batch in enumerate(batches):
        form = _get_form(batch)
        alike.setdefault(index if form is None else form, []).append(index)
    return [_build_unit(indexes, [batches[index] for index in indexes]) for indexes in alike.values()]


def _get_form(batch: Batch) -> object:
    """What batches that can be one have in common; None for one that stays by itself."""
    if batch.is_alone or len(batch.statements) > 1:
        return None
    ((sql, values),) = batch.statements
    if not values or type(values[0]) is not GivenRows or len(values[0]) > 1:
        return None
    form = (sql, *values[1:], batch.shared_transaction)
    try:
        hash(form)
    except TypeError:
        # A constant such as a list.
        return None
    return form


def _build_unit(indexes: Sequence[int], batches: Sequence[Batch]) -> Unit:
    first = batches[0]
    statements = first.statements
    if len(batches) > 1:
        ((sql, _),) = statements
        statements = [(sql, join([batch.statements[0][1] for batch in batches]))]
    return Unit(indexes, statements, first.shared_transaction and not first.is_alone)
