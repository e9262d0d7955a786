"""Serializers that take JSON as it is: no type is coerced, no text trimmed, no number rounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.exceptions import ValidationError as DjangoValidationError
from django.core.validators import EmailValidator, ProhibitNullCharactersValidator
from django.db import models
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import SkipField, empty, get_error_detail
from rest_framework.utils.serializer_helpers import BindingDict
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from config.api.principal import Principal
from config.api.representation import envelope
from config.api.representation.parsers import MAX_EXPONENT, MAX_NUMBER_CHARACTERS, UnusableNumber
from config.api.representation.renderers import to_json
from config.api.representation.text import NOT_TEXT, is_plain
from config.api.versions.table import Change, Version, has

_CENT = Decimal("0.01")
_DIGITS = re.compile(r"[0-9]{1,38}(\.[0-9]{1,2})?")
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
# Validators that DRF gives every text: what they would find has been refused by `is_plain`.
_NEVER_FAIL = (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
GREATEST_ID = 2**63 - 1
MOST_NAMES_TOLD = 100


class StrictField(serializers.Field):
    """A field that takes JSON as it is. It refuses a number that the parser would not convert, whatever it wants.

    `kept`: on PUT, a field that is left out stays as it is instead of returning to its default.
    `closed`: the caller may not set it, so that no form offers it.
    """

    kept = False
    closed = False

    def obeys(self, change: Change) -> bool:
        return has(self.context["version"], change)

    def described(self, schema: dict[str, Any], version: Version, direction: str) -> dict[str, Any]:
        """The field in the OpenAPI document of a version, for a `request` or a `response`.

        Args:
            schema: what drf-spectacular knows of it.
        """
        return schema

    def get_value(self, dictionary: Any) -> Any:
        """DRF's for JSON: it looks for a form first."""
        return dictionary.get(self.field_name, empty)

    def run_validation(self, data: Any = empty) -> Any:
        """DRF's. Of a value that is there, what DRF asks about empty ones is left out."""
        if isinstance(data, UnusableNumber):
            raise serializers.ValidationError(
                f"Numbers have at most {MAX_NUMBER_CHARACTERS} characters and an exponent within ±{MAX_EXPONENT}."
            )
        if data is empty or data is None or self.read_only:
            return super().run_validation(data)
        value = self.to_internal_value(data)
        self.run_validators(value)
        return value


class Text(StrictField, serializers.CharField):
    """Text, kept as it was sent. Of control characters, `lines=True` lets tab and line breaks pass."""

    default_error_messages = {"blank": "Must not be blank."}

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        self.lines = lines
        super().__init__(trim_whitespace=False, **options)
        self.validators: list[Any] = [each for each in self.validators if not isinstance(each, _NEVER_FAIL)]

    def run_validation(self, data: Any = empty) -> Any:
        if isinstance(data, str) and (not data or data.isspace()):
            if data or not self.allow_blank:
                self.fail("blank")
            return data
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Must be a string.")
        if not is_plain(data, lines=self.lines):
            raise serializers.ValidationError(NOT_TEXT)
        return data


class Email(Text):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators.append(EmailValidator(message="Must be an email address."))


class Integer(StrictField, serializers.IntegerField):
    """A JSON integer: no string, no fraction, no exponent, no boolean."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("Must be an integer.")
        return data


class Boolean(StrictField, serializers.BooleanField):
    """A JSON boolean: no string, no number."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Must be true or false.")
        return data


class Money(StrictField, serializers.DecimalField):
    """An amount with at most two decimals, exact to the column and back: a JSON number, later a string."""

    @property
    def as_text(self) -> bool:
        return self.obeys(Change.MONEY_AS_TEXT)

    def to_internal_value(self, data: Any) -> Decimal:
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

    def described(self, schema: dict[str, Any], version: Version, direction: str) -> dict[str, Any]:
        number = schema | {"minimum": float(self.min_value or 0), "maximum": float(self.max_value or 0)}
        if not has(version, Change.MONEY_AS_TEXT):
            return number
        if direction == "response":
            return {"type": "string", "maxLength": self.max_digits + 1, "pattern": r"^[0-9]+\.[0-9]{2}$"}
        pattern = r"^[0-9]+(\.[0-9]{1,2})?$"
        return {"anyOf": [{"type": "string", "maxLength": self.max_digits + 1, "pattern": pattern}, number]}


class Moment(StrictField, serializers.DateTimeField):
    """An RFC 3339 time, with its offset."""

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str) or not _RFC_3339.fullmatch(data):
            raise serializers.ValidationError("Must be an RFC 3339 time such as 2030-01-31T12:00:00Z.")
        return super().to_internal_value(data)


class TextList(StrictField, serializers.ListField):
    """A list that names some of `choices`, each once."""

    def __init__(self, *, choices: Sequence[str], **options: Any) -> None:
        self.choices = choices
        super().__init__(child=Text(), allow_empty=False, **options)

    def described(self, schema: dict[str, Any], version: Version, direction: str) -> dict[str, Any]:
        items = {"type": "string", "enum": list(self.choices)}
        least = 1 if direction == "request" else 0
        return schema | {"items": items, "minItems": least, "maxItems": len(self.choices), "uniqueItems": True}

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list):
            raise serializers.ValidationError("Must be a list.")
        if not data or any(not isinstance(item, str) or item not in self.choices for item in data):
            raise serializers.ValidationError(f"Must name at least one, and only these: {', '.join(self.choices)}.")
        if len(set(data)) < len(data):
            raise serializers.ValidationError("Must not name one twice.")
        return data


class Choice(StrictField, serializers.ChoiceField):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            raise serializers.ValidationError(f"Must be one of: {', '.join(self.choices)}.")
        return data


# What a serializer is made of by its declarations alone. A class that makes its fields in a way of its own may look at
# the request: it is asked each time.
_DECLARED = {serializers.Serializer.get_fields, serializers.ModelSerializer.get_fields}


@cache
def _fields_of(kind: Any) -> Sequence[tuple[str, Any, Mapping[str, Any] | None]]:
    """The fields of a class, bound to a serializer that does nothing else; with what a plain one is made of."""
    fields = serializers.Serializer.fields.func(kind()).fields.items()
    return [(name, field, vars(field) if _is_plain(field) else None) for name, field in fields]


def _is_plain(field: Any) -> bool:
    """Whether it knows nothing of a serializer but that this is its parent."""
    has_fields = isinstance(field, serializers.BaseSerializer) or hasattr(field, "child")
    return not has_fields and type(field).bind is serializers.Field.bind


@cache
def _blank(kind: Any) -> Mapping[str, Any]:
    """What DRF makes of a serializer without arguments."""
    made = object.__new__(kind)
    serializers.BaseSerializer.__init__(made)
    return vars(made)


@cache
def _validators_of(kind: Any) -> Sequence[Any]:
    return serializers.ModelSerializer.get_validators(kind())


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses names that it does not know, and read-only fields that differ, from the version on that says so.

    It does with a body what DRF does, in fewer steps.
    """

    def __init__(self, instance: Any = None, data: Any = empty, **options: Any) -> None:
        if "context" in options and options.keys() <= {"context", "partial"}:
            # Of a request; one that is declared as a field of another has no context, and a place among the fields.
            kind: Any = type(self)
            self.__dict__.update(_blank(kind), instance=instance, _context=options["context"])
            self.partial = options.get("partial", False)
            if data is not empty:
                self.initial_data = data
        else:
            super().__init__(instance, data, **options)

    @cached_property
    def fields(self) -> BindingDict:
        """DRF's, but made and bound once for a class: a serializer has copies that differ in their parent."""
        kind: Any = type(self)
        if kind.get_fields not in _DECLARED:
            return serializers.Serializer.fields.func(self)
        bound = BindingDict(self)
        for name, field, made_of in _fields_of(kind):
            if made_of is None:
                # What it holds must see this serializer, too.
                bound[name] = deepcopy(field)
            else:
                bound.fields[name] = copied = object.__new__(type(field))
                vars(copied).update(made_of, parent=self)
        return bound

    def run_validators(self, value: Any) -> None:
        # DRF asks each read-only field for its default first, which nobody but a validator looks at.
        if self.validators:
            super().run_validators(value)

    def to_internal_value(self, data: Any) -> Any:
        strict = has(self.context["version"], Change.NO_UNKNOWN_NAMES)
        # Not all of them: a body of a hundred thousand names would take seconds, and get an answer of megabytes.
        problems: dict[str, Any] = dict(islice(self._unwritable(data), MOST_NAMES_TOLD)) if strict else {}
        try:
            values = self._read(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**problems, **error.detail}) from None
        if problems:
            raise serializers.ValidationError(problems)
        return values

    def _read(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the writable fields, as DRF's `to_internal_value` finds them."""
        values: dict[str, Any] = {}
        problems: dict[str, Any] = {}
        for name, field in self.fields.fields.items():
            if field.read_only:
                continue
            check = getattr(self, f"validate_{name}", None)
            try:
                value = field.run_validation(field.get_value(data))
                if check is not None:
                    value = check(value)
            except serializers.ValidationError as error:
                problems[name] = error.detail
            except DjangoValidationError as error:
                problems[name] = get_error_detail(error)
            except SkipField:
                pass
            else:
                self.set_value(values, field.source_attrs, value)
        if problems:
            raise serializers.ValidationError(problems)
        return values

    def _unwritable(self, data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
        for name, value in data.items():
            field = self.fields.get(name)
            if field is None and name != envelope.LINKS:
                yield name, ["There is no such field."]
            elif field is not None and field.read_only and not self.shows(name, value):
                yield name, ["Is read-only."]

    def shows(self, name: str, value: Any) -> bool:
        """Whether a read-only field has this value now: what was read may be sent back."""
        return False


class ResourceSerializer(StrictSerializer, serializers.ModelSerializer[Any]):
    """A resource's representation, and the rules of writing it.

    On PUT an optional field that is left out returns to its model's default, but for write-only and kept ones; in a
    merge patch null does the same (RFC 7396, section 2).
    """

    serializer_field_mapping: ClassVar[
        dict[type[models.Field[Any, Any]], type[serializers.Field[Any, Any, Any, Any]]]
    ] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Text,
        models.TextField: Text,
        models.EmailField: Email,
        models.BooleanField: Boolean,
        models.IntegerField: Integer,
        models.BigIntegerField: Integer,
        models.DecimalField: Money,
    }
    serializer_choice_field = Choice
    # What the reference shows, by the names that values are read from.
    example: ClassVar[Mapping[str, Any]] = {}
    # Fields of the answer that makes a resource, which no other answer has.
    shown_once: ClassVar[Sequence[str]] = ()

    def get_validators(self) -> list[Any]:
        """DRF's, which looks through the model's constraints: once for a class."""
        kind: Any = type(self)
        return list(_validators_of(kind)) if kind.get_fields in _DECLARED else super().get_validators()

    @property
    def principal(self) -> Principal | None:
        found: Principal | None = self.context["principal"]
        return found

    def shows(self, name: str, value: Any) -> bool:
        # True is equal to 1, and no read-only field is a boolean.
        return self.instance is not None and self._present[name] == value and not isinstance(value, bool)

    def closed_fields(self) -> set[str]:
        """The writable fields that this caller may not set, on this row; what refuses them is the rules of writing."""
        return {name for name, field in self.fields.items() if getattr(field, "closed", False)}

    @cached_property
    def _present(self) -> Mapping[str, Any]:
        """The row as a client reads it."""
        return json.loads(to_json(self.to_representation(self.instance)))

    def build_standard_field(self, field_name: str, model_field: models.Field[Any, Any]) -> tuple[Any, dict[str, Any]]:
        """DRF's, but a column whose type has no strict field here cannot be written by mistake."""
        field_class, options = super().build_standard_field(field_name, model_field)
        if not options.get("read_only") and not issubclass(field_class, StrictField):
            raise ImproperlyConfigured(f"{type(self).__name__}.{field_name} needs a strict field or read_only.")
        return field_class, options

    def _default_of(self, name: str) -> Any:
        """The default of an optional field; `empty` when it has none to return to."""
        field = self.fields[name]
        if field.required or field.read_only or field.write_only or field.kept:
            return empty
        return self.Meta.model._meta.get_field(name).get_default()

    def to_internal_value(self, data: Any) -> Any:
        given = data
        if self.partial:
            given = {
                name: default
                if value is None and name in self.fields and (default := self._default_of(name)) is not empty
                else value
                for name, value in data.items()
            }
        values = super().to_internal_value(given)
        if self.instance is not None and not self.partial:
            for name in self.fields:
                if name not in data and (default := self._default_of(name)) is not empty:
                    values[name] = default
        return values

    def save(self, **values: Any) -> Any:
        row = super().save(**values)
        self._forget_fields()
        return row

    def save_answered(self, *arguments: Any) -> Any:
        """Adds a row of valid data, for which `create` is not asked; arguments and answer are of `Row.add_answered`."""
        made = self.Meta.model.add_answered(self.validated_data, *arguments)
        self._forget_fields()
        return made

    def _forget_fields(self) -> None:
        # They hold the serializer, which holds the request: a ring, which only the garbage collector would find.
        self.__dict__.pop("fields", None)

    def create(self, validated_data: dict[str, Any]) -> Any:
        """Adds a row. DRF's way looks up anew each time what relations the model has; none is written here."""
        return self.Meta.model.add(**validated_data)

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        """Writes the columns that were given and no other: a concurrent write to the rest is kept."""
        if validated_data:
            instance.change(**validated_data)
        return instance
