"""Rows that go with a removed user: invisible from the commit of the removal on, however many there are.

`on_delete=CASCADE` says which rows go with the row that they refer to. A removal notes its user in `config_erasure`,
and the queries of these rows leave them out until they are erased (config.erasure). That table is empty nearly always.
A statement looks into it once, and then at none of its rows.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, ForeignKey, Func
from django.db.models.sql.compiler import SQLCompiler

ERASURES = "config_erasure"
# Citus runs no query without a column.
PENDING = f"EXISTS (SELECT 1 FROM {ERASURES})"  # noqa: S608 - of a constant
REMOVED = f"(SELECT user_id FROM {ERASURES})"  # noqa: S608 - of a constant


def get_cascades(model: type[models.Model]) -> Sequence[ForeignKey]:
    """The foreign keys of a model whose rows go with the row that they refer to."""
    keys = [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]
    return [key for key in keys if key.remote_field.on_delete is models.CASCADE]


def get_owner_column(model: type[models.Model]) -> str | None:
    """The column that names the user with whom a model's rows go; None where they go with none."""
    return next((key.column for key in get_cascades(model) if _is_user_key(key)), None)


def _is_user_key(key: ForeignKey) -> bool:
    """Whether a foreign key refers to a user. It may be asked while the models are still being loaded."""
    related: Any = key.remote_field.model
    label = related if isinstance(related, str) else related._meta.label
    return bool(label.lower() == settings.AUTH_USER_MODEL.lower())


def _goes(key: ForeignKey, value: str) -> str:
    """The condition, in SQL, under which the row that a foreign key refers to goes; empty where none ever does.

    Args:
        value: of the key, in SQL.
    """
    if _is_user_key(key):
        return f"{value} IN {REMOVED}"
    parent: Any = key.remote_field.model
    table = parent._meta.db_table
    conditions = filter(None, (_goes(above, f"{table}.{above.column}") for above in get_cascades(parent)))
    condition = " OR ".join(conditions)
    row = f"{table}.{key.target_field.column} = {value}"
    return condition and f"EXISTS (SELECT FROM {table} WHERE {row} AND ({condition}))"


def build_goes_with_removed(model: type[models.Model], row: str) -> str:
    """The condition, in SQL, under which a row goes with a removed user.

    Args:
        model: whose rows go with other rows.
        row: the name of the row in SQL.
    """
    goes = " OR ".join(filter(None, (_goes(key, f"{row}.{key.column}") for key in get_cascades(model))))
    return f"{PENDING} AND ({goes})"


class IsVisible(Func):
    """The condition that a row of a model goes with no removed user: that it is not about to be erased.

    The first look is at whether there is any. As a whole it is no join, which PostgreSQL might begin with.
    """

    output_field = models.BooleanField()

    def __init__(self, model: type[models.Model]) -> None:
        self.keys = get_cascades(model)
        super().__init__(*(F(key.attname) for key in self.keys))

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: object, **context: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        columns = [compiler.compile(source)[0] for source in self.get_source_expressions()]
        goes = " OR ".join(filter(None, map(_goes, self.keys, columns)))
        return f"(({PENDING} AND ({goes})) IS NOT TRUE)", ()
