"""The order of a list: one sortable field, ties broken by `id` in the same direction."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from django.db.models import Model, QuerySet

from config.api.listing.query import Parameters

Row = TypeVar("Row", bound=Model)


class Ordering(NamedTuple):
    field: str = "id"
    descending: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The whole sort key. It ends in `id`, so no two rows share it."""
        return ("id",) if self.field == "id" else (self.field, "id")

    def apply(self, rows: QuerySet[Row], *, backwards: bool = False) -> QuerySet[Row]:
        sign = "-" if self.descending != backwards else ""
        return rows.order_by(*(sign + column for column in self.columns))

    def key(self, row: Any) -> tuple[Any, ...]:
        return tuple([getattr(row, column) for column in self.columns])


def read(parameters: Parameters, sortable: Sequence[str]) -> Ordering:
    field = parameters.get("sort")
    if field is not None and field not in sortable:
        parameters.refuse("sort", f"Must be one of: {', '.join(sortable)}.")
    order = parameters.get("order")
    if order not in {None, "asc", "desc"}:
        parameters.refuse("order", "Must be asc or desc.")
    return Ordering(field or "id", order == "desc")
