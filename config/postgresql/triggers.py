"""Triggers that run once a statement, behind it, whatever the number of its rows."""

from collections.abc import Sequence

import pgtrigger


def after_statement(
    name: str,
    operation: pgtrigger.Operation,
    func: str,
    *,
    new: str | None = None,
    old: str | None = None,
    declare: Sequence[tuple[str, str]] = (),
) -> pgtrigger.Trigger:
    """A trigger that returns nothing.

    Args:
        name: of the trigger.
        operation: behind which it runs.
        func: its statements, in PL/pgSQL.
        new: the name of the table of the rows after the statement.
        old: the name of the table of the rows that there were.
        declare: the variables of `func`, with their types and values.
    """
    return pgtrigger.Trigger(
        name=name,
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=pgtrigger.Referencing(new=new, old=old) if new or old else None,
        declare=list(declare) or None,
        func=func,
    )
