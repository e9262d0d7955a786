"""Equality filters, declared with django-filter and strict about what they are given."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django_filters import Filter, FilterSet

from config.api.listing.query import Parameters


class StrictFilterSet(FilterSet):
    """A FilterSet that refuses an empty value, which django-filter takes for no filter at all.

    Its filters are used one by one, without a form and without the copy of each that django-filter makes for a request:
    they may not look at the request.
    """

    @classmethod
    def read(cls, parameters: Parameters) -> dict[str, str]:
        """The filters that the request uses, with their values; what is wrong with them is refused in `parameters`."""
        given = {name: value for name in cls.base_filters if (value := parameters.get(name)) is not None}
        for name, value in given.items():
            if value == "":
                parameters.refuse(name, "Must not be empty.")
                continue
            problems = _problems if cls.is_choice(name) else _problems.__wrapped__
            for message in problems(cls.base_filters[name], value):
                parameters.refuse(name, message)
        return given

    @classmethod
    def apply(cls, rows: Any, given: Mapping[str, str]) -> Any:
        """The rows under filters that `read` found nothing wrong with."""
        kind: Any = cls
        filters = _filters_of(kind, rows.model) if given else {}
        for name, value in given.items():
            rows = filters[name].filter(rows, filters[name].field.clean(value))
        return rows

    @classmethod
    def is_choice(cls, name: str) -> bool:
        """Whether a filter knows only a few values."""
        return "choices" in cls.base_filters[name].extra


# Django makes the choices anew at each look.
@lru_cache(maxsize=256)
def _problems(one: Any, value: str) -> Sequence[str]:
    """What is wrong with the value of a filter."""
    try:
        one.field.clean(value)
    except ValidationError as error:
        return error.messages
    return ()


@cache
def _filters_of(filterset_class: Any, model: type[Model]) -> Mapping[str, Filter]:
    """The filters of a class, bound to one instance of it, whose methods they may name."""
    filters: Mapping[str, Filter] = filterset_class(queryset=QuerySet(model)).filters
    return filters
