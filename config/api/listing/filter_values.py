"""The filters that a FilterSet makes from its `Meta.fields`: by bounds, and by several values.

An older version, which ignores unknown parameters, has none of them.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django_filters import Filter

from config.api.representation.fields import MAX_ID, NOT_RFC_3339, RFC_3339, is_id, parse_time

# The columns that have bounds.
WITH_BOUNDS = (models.DateTimeField, models.IntegerField, models.DecimalField)
# As the reference and the pages say what they do.
BOUNDS = {"gte": "≥ this value", "gt": "> this value", "lt": "< this value", "lte": "≤ this value"}
MAX_VALUES = 100
SEPARATOR = ","
MAX_SEARCH = 200

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_MONEY = re.compile(r"-?[0-9]{1,10}(\.[0-9]{1,2})?")
TIME_PATTERN, MONEY_PATTERN = f"^{RFC_3339.pattern}$", f"^{_MONEY.pattern}$"


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
