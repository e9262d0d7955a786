"""Equality filters, declared with django-filter and strict about what they are given."""

from typing import Any

from django_filters import FilterSet

from config.api.parameters import Parameters


class StrictFilterSet(FilterSet):
    """A FilterSet that refuses an empty value, which django-filter takes for no filter at all."""

    @classmethod
    def read(cls, parameters: Parameters, rows: Any) -> Any:
        """The rows under the request's filters, and the filters in use as a dict; refusals go to `parameters`."""
        given = {name: value for name in cls.base_filters if (value := parameters.get(name)) is not None}
        filters = cls(data=given, queryset=rows)
        for name, value in given.items():
            if value == "":
                parameters.refuse(name, "Must not be empty.")
            for message in filters.form.errors.get(name, ()):
                parameters.refuse(name, str(message))
        return (filters.qs if filters.is_valid() else rows), given
