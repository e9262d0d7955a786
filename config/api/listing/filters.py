"""The filter backends: filters, declared with django-filter, and the order.

A list is ordered by one sortable field, ties broken by `id` in the same direction. As in DRF, the backends of a view
are asked for a single row, too: one that limits rows limits both. The two here read parameters that only lists have.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Model, QuerySet
from django_filters import Filter, FilterSet
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from config.api.listing.query import QueryParameters
from config.api.representation.fields import MAX_ID, NOT_RFC_3339, RFC_3339, is_id, parse_time
from config.http.errors import forbidden
from config.postgresql.words import get_words

# The columns that have bounds.
WITH_BOUNDS = (models.DateTimeField, models.IntegerField, models.DecimalField)
# As the reference and the pages say what they do.
BOUNDS = {"gte": "≥ this value", "gt": "> this value", "lt": "< this value", "lte": "≤ this value"}
MAX_VALUES = 100
SEPARATOR = ","
MAX_SEARCH = 200

# The lookups of a column of times or numbers, and of one of ids.
RANGE = tuple(BOUNDS)
IDS = ("in",)
SEARCH = "q"

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_MONEY = re.compile(r"-?[0-9]{1,10}(\.[0-9]{1,2})?")
TIME_PATTERN, MONEY_PATTERN = f"^{RFC_3339.pattern}$", f"^{_MONEY.pattern}$"


# --- The filters that a FilterSet makes from its `Meta.fields`: by bounds, and by several values. An older version,
# which ignores unknown parameters, has none of them.


def split_values(text: str) -> Sequence[str]:
    """The values of `1,2,3`, each once."""
    return list(dict.fromkeys(text.split(SEPARATOR)))


class TimeField(forms.Field):
    def clean(self, value: str) -> datetime:
        time = parse_time(value)
        if time is None:
            raise ValidationError(f"{NOT_RFC_3339} Encode a plus sign as %2B.")
        return time


class WholeNumberField(forms.Field):
    def __init__(self, *, column: Any, **options: Any) -> None:
        super().__init__(**options)
        bits = 63 if isinstance(column, models.BigIntegerField | models.BigAutoField) else 31
        self.minimum, self.maximum = -(2**bits), 2**bits - 1

    def clean(self, value: str) -> int:
        if not _WHOLE.fullmatch(value) or not self.minimum <= int(value) <= self.maximum:
            raise ValidationError(f"Must be a whole number from {self.minimum} to {self.maximum}.")
        return int(value)


class MoneyField(forms.Field):
    def clean(self, value: str) -> Decimal:
        if not _MONEY.fullmatch(value):
            raise ValidationError("Must be a number with at most 10 digits and 2 decimals.")
        return Decimal(value)


class IdsField(forms.Field):
    def clean(self, value: str) -> Sequence[int]:
        values = split_values(value)
        if not all(map(is_id, values)):
            raise ValidationError(f"Must be a comma-separated list of ids from 1 to {MAX_ID}.")
        if len(values) > MAX_VALUES:
            raise ValidationError(f"Must be at most {MAX_VALUES} ids.")
        return [int(each) for each in values]


class LaterFilter(Filter):
    """A filter that came with a version.

    Attributes:
        is_small: it leaves so few rows, at any size of the table, that they need no order from an index.
    """

    is_small = False

    def __init__(self, column: Any, form_field: forms.Field, lookup_expr: str) -> None:
        super().__init__(field_name=column.attname, lookup_expr=lookup_expr)
        self._field = form_field


class BoundFilter(LaterFilter):
    """`created_at[gte]=…`, of a column of WITH_BOUNDS."""

    def __init__(self, column: Any, lookup_expr: str) -> None:
        match column:
            case models.DateTimeField():
                field: forms.Field = TimeField()
            case models.IntegerField():
                field = WholeNumberField(column=column)
            case _:
                field = MoneyField()
        super().__init__(column, field, lookup_expr)


class IdsFilter(LaterFilter):
    """`id=1,2,3`."""

    def __init__(self, column: Any) -> None:
        super().__init__(column, IdsField(), "in")
        self.is_small = bool(column.primary_key)


class SearchFilter(LaterFilter):
    """`q=…`. It selects rows by their words, and not by a condition on a column.

    Attributes:
        columns: whose words are looked at.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        Filter.__init__(self)
        self.columns = columns
        self._field = forms.CharField(
            strip=False,
            max_length=MAX_SEARCH,
            error_messages={"max_length": f"Must be at most {MAX_SEARCH} characters."},
        )

    def filter(self, queryset: Any, value: str) -> Any:
        return queryset


# --- Those of a list


class StrictFilterSet(FilterSet):
    """A FilterSet that refuses an empty value, which django-filter takes for no filter at all.

    Its filters are used without a form, and bound once for a class: they may not look at the request. Those that are
    made of `Meta.fields` are of later versions: `{"created_at": RANGE}` makes `created_at[gte]` and the like, and
    `{"user": IDS}` makes `user_id=1,2`. There, a choice takes several values, too.

    Attributes:
        first: the names of the filters that every version has.
        later: the names of the other filters.
    """

    first: ClassVar[Sequence[str]]
    later: ClassVar[Sequence[str]]

    @classmethod
    def get_filters(cls) -> Any:
        filters = super().get_filters()
        cls.later = [name for name, one in filters.items() if isinstance(one, LaterFilter)]
        cls.first = [name for name in filters if name not in cls.later]
        return filters

    @classmethod
    def get_filter_name(cls, field_name: str, lookup_expr: str) -> str:
        name: str = cls._meta.model._meta.get_field(field_name).attname
        return name if lookup_expr in IDS else f"{name}[{lookup_expr}]"

    @classmethod
    def filter_for_field(cls, field: Any, field_name: str, lookup_expr: Any = None) -> Filter:
        return IdsFilter(field) if lookup_expr in IDS else BoundFilter(field, lookup_expr)

    @classmethod
    def parse(cls, parameters: QueryParameters) -> dict[str, str]:
        """The filters that a request uses, with their values; what is wrong with them is refused in `parameters`."""
        names = cls.first
        if parameters.takes_later:
            parameters.know(*cls.later)
            names = [*names, *(name for name in cls.later if name in parameters.query)]
        values = {name: value for name in names if (value := parameters.get(name)) is not None}
        for name, value in values.items():
            validate = _validate if cls.is_choice(name) else _validate.__wrapped__
            several = SEPARATOR in value and cls.is_choice(name) and parameters.takes_later
            if several or name in cls.later:
                parameters.uses_later = True
            given = split_values(value) if several else (value,)
            if len(given) > MAX_VALUES:
                parameters.refuse(name, f"Must be at most {MAX_VALUES} values.")
            for message in dict.fromkeys(text for each in given for text in validate(cls.base_filters[name], each)):
                parameters.refuse(name, message)
        return values

    @classmethod
    def apply(cls, queryset: Any, values: Mapping[str, str]) -> Any:
        """The queryset under filters with which `parse` found nothing wrong."""
        kind: Any = cls
        filters = _bind_filters(kind, queryset.model) if values else {}
        for name, value in values.items():
            several = split_values(value) if cls.is_choice(name) and SEPARATOR in value else [value]
            if len(several) > 1:
                queryset = queryset.filter(**{f"{filters[name].field_name}__in": several})
            else:
                queryset = filters[name].filter(queryset, filters[name].field.clean(several[0]))
        return queryset

    @classmethod
    def is_choice(cls, name: str) -> bool:
        """Whether a filter takes only a few values."""
        return "choices" in cls.base_filters[name].extra

    @classmethod
    def get_bounds(cls, names: Iterable[str]) -> dict[str, str]:
        """The columns of which names of filters give bounds, by these names."""
        filters = ((name, cls.base_filters[name]) for name in names)
        return {name: one.field_name for name, one in filters if isinstance(one, BoundFilter)}

    @classmethod
    def get_default_sort(cls, names: Iterable[str]) -> str:
        """The field that a list under filters is sorted by: one that has bounds, for no other order has an index."""
        bounded = {*cls.get_bounds(names).values()}
        return bounded.pop() if len(bounded) == 1 else "id"

    @classmethod
    def refuse_bounds(cls, names: Iterable[str], sort: str, parameters: QueryParameters) -> None:
        """Refuses bounds in another order than that of their field: no index has their rows in the order of the list.

        Args:
            names: of the filters of the list.
            sort: the field that it is sorted by.
            parameters: of the request.
        """
        if cls.is_small(names):
            return
        bounds = cls.get_bounds(names)
        for name, column in bounds.items():
            others = " and ".join(sorted({*bounds.values()} - {column}))
            if column != sort and others:
                ways = f"Omit this filter, or omit those on {others} and use sort={column}."
                parameters.refuse(name, f"Only one field can have bounds. {ways}")
            elif column != sort:
                message = f"This filter works only with sort={column}, not sort={sort}. Change or omit sort."
                parameters.refuse(name, message)

    @classmethod
    def get_ids(cls, values: Mapping[str, str]) -> dict[str, Sequence[int]]:
        """The ids that filters give of a foreign key, by its column."""
        filters = {name: one for name in values if isinstance(one := cls.base_filters[name], IdsFilter)}
        return {one.field_name: one.field.clean(values[name]) for name, one in filters.items() if not one.is_small}

    @classmethod
    def is_small(cls, names: Iterable[str]) -> bool:
        """Whether filters leave so few rows, at any size of the table, that any order of them will do."""
        return any(getattr(cls.base_filters[name], "is_small", False) for name in names)


@cache
def build_filterset_class(
    declared: type[StrictFilterSet], model: type[Model], sortable: tuple[str, ...], parent: str | None
) -> type[StrictFilterSet]:
    """A FilterSet with what every list has: bounds of each time and number that it is sorted by, and several ids.

    Args:
        declared: the other filters of the list.
        model: of its rows.
        sortable: the fields by which it is sorted.
        parent: the column of the parent of a nested collection, if it is one.
    """
    if declared.later:
        # The filters of the list that this one is derived from.
        declared = declared.__bases__[0]
    columns = [model._meta.get_field(name) for name in sortable]
    fields: dict[str, Sequence[str]] = {column.name: RANGE for column in columns if isinstance(column, WITH_BOUNDS)}
    fields["id"] = IDS + RANGE
    if parent is None and any(column.name == "user" for column in model._meta.concrete_fields):
        fields["user"] = IDS
    members: dict[str, object] = {"Meta": type("Meta", (), {"model": model, "fields": fields})}
    if words := get_words(model):
        members[SEARCH] = SearchFilter(words.columns)
    return type(f"{model.__name__}FilterSet", (declared,), members)


class FilterBackend(BaseFilterBackend):
    """Filters a list by the `filterset_class` of the view. A refused value leaves the list as it is."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        if view.detail:
            return queryset
        values = view.filter_values = view.filterset_class.parse(view.parameters)
        refused = [name for name in values if name in view.staff_filters]
        if refused and not view.principal.user.is_staff:
            raise forbidden("You can see only your own resources, so you cannot filter by this field.", *refused)
        if view.parameters.problems:
            return queryset
        return view.filterset_class.apply(queryset, values)


# Django would build the choices each time.
@lru_cache(maxsize=256)
def _validate(declared: Any, value: str) -> Sequence[str]:
    """What is wrong with the value of a filter."""
    if not value:
        # Django takes it for no choice at all.
        return [declared.field.error_messages.get("invalid_choice", "Must not be empty.")]
    try:
        declared.field.clean(value)
    except ValidationError as error:
        return error.messages
    return ()


@cache
def _bind_filters(filterset_class: Any, model: type[Model]) -> Mapping[str, Filter]:
    """The filters of a class, bound to one instance of it, whose methods they may name."""
    return filterset_class(queryset=QuerySet(model)).filters


AnyModel = TypeVar("AnyModel", bound=Model)


class Ordering(NamedTuple):
    """A sort field and its direction. The whole sort key ends in `id`, so that no two rows share it."""

    field: str = "id"
    descending: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sort key."""
        return ("id",) if self.field == "id" else (self.field, "id")

    def apply(self, queryset: QuerySet[AnyModel], *, backwards: bool = False) -> QuerySet[AnyModel]:
        """The queryset in this order, or in the opposite one."""
        sign = "-" if self.descending != backwards else ""
        return queryset.order_by(*(sign + column for column in self.columns))

    def get_key(self, row: Any) -> tuple[Any, ...]:
        """The sort key of a row."""
        return tuple([getattr(row, column) for column in self.columns])


def parse_ordering(
    parameters: QueryParameters, sortable: Sequence[str], filterset_class: type[StrictFilterSet]
) -> Ordering:
    """The order that `?sort=` and `?order=` ask for; what is wrong with them is refused in `parameters`."""
    field = parameters.get("sort")
    if parameters.takes_later and "sort" not in parameters.query:
        field = filterset_class.get_default_sort([name for name in filterset_class.later if name in parameters.query])
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
        if view.detail:
            return queryset
        view.ordering = parse_ordering(view.parameters, view.sortable, view.filterset_class)
        return view.ordering.apply(queryset)
