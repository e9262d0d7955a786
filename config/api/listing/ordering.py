"""The order of a list: one sortable field, ties broken by `id` in the same direction."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from config.api.listing.query import QueryParameters

AnyModel = TypeVar("AnyModel", bound=Model)


class Ordering(NamedTuple):
    """A sort field and its direction. The whole sort key ends in `id`, so that no two rows share it."""

    field: str = "id"
    descending: bool = False

    @classmethod
    def from_queryset(cls, queryset: QuerySet[Any]) -> Self:
        """The order that a queryset was given by `apply`.

        Raises:
            ValueError: the queryset is in another order, or in none: its pages would overlap.
        """
        first, *rest = map(str, queryset.query.order_by or queryset.model._meta.ordering or ["?"])
        ordering = cls(first.removeprefix("-"), first.startswith("-"))
        if first == "?" or rest not in ([], ordering.get_order_by()[1:]):
            raise ValueError(f"A list of {queryset.model.__name__} must be ordered by one field and `id`.")
        return ordering

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sort key."""
        return ("id",) if self.field == "id" else (self.field, "id")

    def get_order_by(self, *, backwards: bool = False) -> list[str]:
        """The arguments of `QuerySet.order_by`."""
        sign = "-" if self.descending != backwards else ""
        return [sign + column for column in self.columns]

    def apply(self, queryset: QuerySet[AnyModel], *, backwards: bool = False) -> QuerySet[AnyModel]:
        """The queryset in this order, or in the opposite one."""
        return queryset.order_by(*self.get_order_by(backwards=backwards))

    def get_key(self, row: Any) -> tuple[Any, ...]:
        """The sort key of a row."""
        return tuple([getattr(row, column) for column in self.columns])


def parse_ordering(parameters: QueryParameters, sortable: Sequence[str]) -> Ordering:
    """The order that `?sort=` and `?order=` ask for; what is wrong with them is refused in `parameters`."""
    field = parameters.get("sort")
    if field is not None and field not in sortable:
        parameters.refuse("sort", f"Must be one of: {', '.join(sortable)}.")
        field = None
    order = parameters.get("order")
    if order not in {None, "asc", "desc"}:
        parameters.refuse("order", "Must be asc or desc.")
    return Ordering(field or "id", order == "desc")


class OrderingFilter(BaseFilterBackend):
    """Orders a list by `?sort=` and `?order=`, within the `sortable` fields of the view."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        return parse_ordering(view.parameters, view.sortable).apply(queryset)
