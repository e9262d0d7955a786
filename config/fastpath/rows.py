"""Model instances of rows, made around `__init__`.

Replaces: `Model.from_db`. Buys: `__init__` asks of each field whether its value was given, which takes several times as
long as the rest of a row.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db.models import Model
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init


def build_row(model: type[Model], alias: str | None, names: Sequence[str], values: Sequence[Any]) -> Any:
    """What `model.from_db(alias, names, values)` gives."""
    if _has_own_way(model) or has_init_receivers():
        return model.from_db(alias, names, values)
    return _build(model, alias, names, values)


def from_db(original: Any) -> Any:
    """Takes the place of `from_db` in a base class of models, which a subclass may extend."""

    def fast_from_db(
        cls: Any, db: str | None, field_names: Sequence[str], values: Sequence[Any], /, **options: Any
    ) -> Any:
        if has_init_receivers() or cls.__init__ is not Model.__init__:
            return original.__func__(cls, db, field_names, values, **options)
        return _build(cls, db, field_names, values)

    return classmethod(fast_from_db)


def has_init_receivers() -> bool:
    """Whether somebody listens to instances being made."""
    return bool(pre_init.receivers or post_init.receivers)


@cache
def _has_own_way(model: Any) -> bool:
    return model.__init__ is not Model.__init__ or model.from_db.__func__ is not Model.from_db.__func__  # type: ignore[attr-defined]


def _build(model: Any, alias: str | None, names: Sequence[str], values: Sequence[Any]) -> Any:
    row = model.__new__(model)
    state = ModelState()
    state.db, state.adding = alias, False
    row.__dict__ = columns = dict(zip(names, values, strict=True))
    columns["_state"] = state
    return row
