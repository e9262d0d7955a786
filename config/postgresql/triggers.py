"""Triggers that run once a statement, behind it, whatever the number of its rows; and what declares some on a model."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pgtrigger
from django.db import models

AnyModel = TypeVar("AnyModel", bound=type[models.Model])


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


def track(attribute: str, build: Callable[[Any], Any]) -> Callable[[AnyModel], AnyModel]:
    """Decorates a model: it gets an attribute, and the attribute's triggers.

    Args:
        attribute: its name.
        build: makes it of the model. It has a method `triggers`.
    """

    def declare(model: AnyModel) -> AnyModel:
        tracked = build(model)
        setattr(model, attribute, tracked)
        return pgtrigger.register(*tracked.triggers())(model)

    return declare
