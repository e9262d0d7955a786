"""Serializer fields that take JSON as it is: no type is coerced, no text trimmed, no number rounded."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.core.validators import EmailValidator
from rest_framework import serializers
from rest_framework.fields import empty

from config.api.representation.text import BLANK, NOT_TEXT, is_blank, is_plain, validate_visible
from config.api.versions.table import Change, Version, has
from config.http.json import MAX_EXPONENT, MAX_NUMBER_CHARACTERS, JSONObject, UnusableNumber

MAX_ID = 2**63 - 1
_ID = re.compile(r"[1-9][0-9]{0,18}")

_CENT = Decimal("0.01")
_DIGITS = re.compile(r"[0-9]{1,38}(\.[0-9]{1,2})?")
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
RFC_3339 = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt]{_CLOCK}:[0-5][0-9](\.[0-9]{{1,9}})?([Zz]|[+-]{_CLOCK})")
NOT_RFC_3339 = "Must be an RFC 3339 time such as 2030-01-31T12:00:00Z."


def is_id(text: str) -> bool:
    """Whether a text of an address is a positive 64-bit integer."""
    return bool(_ID.fullmatch(text)) and int(text) <= MAX_ID


def parse_time(text: object) -> datetime | None:
    """The instant of an RFC 3339 time, in UTC, without what is finer than microseconds; None where it is no such time.

    Python reads ISO 8601: more forms than RFC 3339 has, and no lower case.
    """
    if not isinstance(text, str) or not RFC_3339.fullmatch(text):
        return None
    try:
        # PostgreSQL has no offset from 16:00 on, RFC 3339 has them up to 23:59.
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class StrictField(serializers.Field):
    """A field that takes JSON as it is. It refuses a number that the parser did not convert, whatever its type.

    Attributes:
        unchanged_if_absent: on PUT, a field that is left out stays as it is instead of returning to its default.
        closed: the caller may not set it, so that no form offers it.
        needs_transaction: its validation locks rows, and so belongs into the transaction of the write.
    """

    default_error_messages = {
        "required": "Is required.",
        "null": "Must not be null.",
        "max_length": "Must have at most {max_length} characters.",
        "min_value": "Must be at least {min_value}.",
        "max_value": "Must be at most {max_value}.",
    }
    unchanged_if_absent = False
    closed = False
    needs_transaction = False

    def described(self, schema: JSONObject, version: Version, direction: str) -> JSONObject:
        """The field in the OpenAPI document of a version, for a `request` or a `response`.

        Args:
            schema: what drf-spectacular knows of it.
        """
        return schema

    def run_validation(self, data: object = empty) -> object:
        if isinstance(data, UnusableNumber):
            raise serializers.ValidationError(
                f"Numbers have at most {MAX_NUMBER_CHARACTERS} characters and an exponent within ±{MAX_EXPONENT}."
            )
        return super().run_validation(data)


class CharField(StrictField, serializers.CharField):
    """Text, stored as it was sent. Of control characters, `lines=True` lets tab and line breaks pass."""

    default_error_messages = {"blank": BLANK}

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        self.lines = lines
        super().__init__(trim_whitespace=False, **options)

    def run_validation(self, data: object = empty) -> object:
        if data == "" and self.allow_blank:
            return data
        if isinstance(data, str) and is_blank(data):
            self.fail("blank")
        return super().run_validation(data)

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Must be a string.")
        if not is_plain(data, lines=self.lines):
            raise serializers.ValidationError(NOT_TEXT)
        return data


_is_email = EmailValidator(message="Must be an email address.")


def _validate_email(value: str) -> None:
    """One problem at a time: a text with a blank is no email in the first place."""
    _is_email(value)
    validate_visible(value)


class EmailField(CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators.append(_validate_email)


class IntegerField(StrictField, serializers.IntegerField):
    """A JSON integer: no string, no fraction, no exponent, no boolean."""

    def to_internal_value(self, data: object) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("Must be an integer.")
        return data


class OverlapField(IntegerField):
    """For how many seconds the previous key or secret stays valid beside a new one."""

    DEFAULT = 86_400

    def __init__(self, text: str) -> None:
        text = f"{text} Default: 86400 (one day)."
        super().__init__(write_only=True, default=self.DEFAULT, min_value=0, max_value=604_800, help_text=text)


class BooleanField(StrictField, serializers.BooleanField):
    """A JSON boolean: no string, no number."""

    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Must be true or false.")
        return data


class MoneyField(StrictField, serializers.DecimalField):
    """An amount with at most two decimals, exact to the column and back: a JSON number, later a string."""

    def __init__(self, **options: Any) -> None:
        text = "The amount, with at most two decimals, such as 12.30. The service stores no currency."
        super().__init__(**{"decimal_places": 2, "help_text": text, **options})

    @property
    def as_text(self) -> bool:
        return has(self.context["version"], Change.MONEY_AS_TEXT)

    def to_internal_value(self, data: object) -> Decimal:
        if isinstance(data, str) and self.as_text and _DIGITS.fullmatch(data):
            data = Decimal(data)
        if not isinstance(data, int | Decimal) or isinstance(data, bool):
            other = ", or a string of plain digits with at most two decimals" if self.as_text else ""
            raise serializers.ValidationError(f"Must be a number{other}.")
        amount = Decimal(data)
        # Compared before it is quantized: the bounds keep it within the precision that quantize() has.
        for validator in self.validators:
            validator(amount)
        exact = amount.quantize(_CENT)
        if amount != exact:
            raise serializers.ValidationError("Must have at most two decimals.")
        return exact

    def run_validators(self, value: Decimal) -> None:
        """They ran before it was quantized, which leaves it equal."""

    def to_representation(self, value: Decimal) -> Decimal | str:
        amount = value.quantize(_CENT)
        return str(amount) if self.as_text else amount

    def described(self, schema: JSONObject, version: Version, direction: str) -> JSONObject:
        number = schema | {"minimum": float(self.min_value or 0), "maximum": float(self.max_value or 0)}
        if not has(version, Change.MONEY_AS_TEXT):
            return number
        if direction == "response":
            return {"type": "string", "maxLength": self.max_digits + 1, "pattern": r"^[0-9]+\.[0-9]{2}$"}
        pattern = r"^[0-9]+(\.[0-9]{1,2})?$"
        text = {"type": "string", "maxLength": self.max_digits + 1, "pattern": pattern}
        return {"description": number.pop("description", ""), "anyOf": [text, number]}


class DateTimeField(StrictField, serializers.DateTimeField):
    """An RFC 3339 time, with its offset."""

    def to_internal_value(self, data: object) -> datetime:
        time = parse_time(data)
        if time is None:
            raise serializers.ValidationError(NOT_RFC_3339)
        return time


class MultiChoiceField(StrictField, serializers.ListField):
    """A list that names some of `choices`, each once."""

    def __init__(self, *, choices: Sequence[str], **options: Any) -> None:
        self.choices = choices
        super().__init__(child=CharField(), allow_empty=False, **options)

    def described(self, schema: JSONObject, version: Version, direction: str) -> JSONObject:
        items = {"type": "string", "enum": list(self.choices)}
        least = 1 if direction == "request" else 0
        return schema | {"items": items, "minItems": least, "maxItems": len(self.choices), "uniqueItems": True}

    def to_internal_value(self, data: object) -> list[str]:
        if not isinstance(data, list):
            raise serializers.ValidationError("Must be a list.")
        if not data or any(not isinstance(item, str) or item not in self.choices for item in data):
            raise serializers.ValidationError(f"Must list at least one of, and only: {', '.join(self.choices)}.")
        if len(set(data)) < len(data):
            raise serializers.ValidationError("Must not repeat a value.")
        return data


class ChoiceField(StrictField, serializers.ChoiceField):
    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str) or data not in self.choices:
            raise serializers.ValidationError(f"Must be one of: {', '.join(self.choices)}.")
        return data
