"""Equality filters, declared with django-filter and strict about their values."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django_filters import Filter, FilterSet
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from config.api.listing.query import QueryParameters


class StrictFilterSet(FilterSet):
    """A FilterSet that refuses an empty value, which django-filter takes for no filter at all.

    Its filters are used without a form, and bound once for a class: they may not look at the request.
    """

    @classmethod
    def parse(cls, parameters: QueryParameters) -> dict[str, str]:
        """The filters that a request uses, with their values; what is wrong with them is refused in `parameters`."""
        values = {name: value for name in cls.base_filters if (value := parameters.get(name)) is not None}
        for name, value in values.items():
            if value == "":
                parameters.refuse(name, "Must not be empty.")
                continue
            validate = _validate if cls.is_choice(name) else _validate.__wrapped__
            for message in validate(cls.base_filters[name], value):
                parameters.refuse(name, message)
        return values

    @classmethod
    def apply(cls, queryset: Any, values: Mapping[str, str]) -> Any:
        """The queryset under filters with which `parse` found nothing wrong."""
        kind: Any = cls
        filters = _bind_filters(kind, queryset.model) if values else {}
        for name, value in values.items():
            queryset = filters[name].filter(queryset, filters[name].field.clean(value))
        return queryset

    @classmethod
    def is_choice(cls, name: str) -> bool:
        """Whether a filter takes only a few values."""
        return "choices" in cls.base_filters[name].extra


class FilterBackend(BaseFilterBackend):
    """Filters a list by the `filterset_class` of the view. A refused value leaves the list as it is."""

    @staticmethod
    def get_values(view: Any) -> dict[str, str]:
        """The filters of the view's request, with their values; the paginator asks, too."""
        values: dict[str, str] = view.filterset_class.parse(view.parameters)
        return values

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        values = self.get_values(view)
        if view.parameters.problems:
            return queryset
        filtered: QuerySet[Any] = view.filterset_class.apply(queryset, values)
        return filtered


# Django makes the choices anew at each look.
@lru_cache(maxsize=256)
def _validate(declared: Any, value: str) -> Sequence[str]:
    """What is wrong with the value of a filter."""
    try:
        declared.field.clean(value)
    except ValidationError as error:
        return error.messages
    return ()


@cache
def _bind_filters(filterset_class: Any, model: type[Model]) -> Mapping[str, Filter]:
    """The filters of a class, bound to one instance of it, whose methods they may name."""
    filters: Mapping[str, Filter] = filterset_class(queryset=QuerySet(model)).filters
    return filters
