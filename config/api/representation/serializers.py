"""Serializers that take JSON as it is: unknown names are refused, and a write touches nothing but what was sent."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from django.db import models
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import empty

from config.api.principal import Principal
from config.api.representation.envelope import LINKS
from config.api.representation.fields import (
    BooleanField,
    CharField,
    ChoiceField,
    EmailField,
    IntegerField,
    MoneyField,
    parse_time,
)
from config.api.versions.table import Change, has
from config.http.errors import Detail, DomainError
from config.http.json import to_json
from config.postgresql.new_rows import build_rows

MAX_NAMES_TOLD = 100
# A row's values, by the names of fields.
Representation = dict[str, object]


class StrictSerializer(serializers.Serializer):
    """Refuses names that it does not know, and read-only fields that differ, from the version on that says so."""

    def to_internal_value(self, data: Mapping[str, object]) -> dict[str, object]:
        strict = has(self.context["version"], Change.NO_UNKNOWN_NAMES)
        # Not all of them: a body of a hundred thousand names would take seconds, and get an answer of megabytes.
        problems: dict[str, object] = dict(islice(self._find_unwritable(data), MAX_NAMES_TOLD)) if strict else {}
        try:
            values = self.validate_fields(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**problems, **error.detail}) from None
        if problems:
            raise serializers.ValidationError(problems)
        return values

    def validate_fields(self, data: Mapping[str, object]) -> dict[str, object]:
        """The values of the writable fields: DRF's `to_internal_value`."""
        return super().to_internal_value(data)

    def _find_unwritable(self, data: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
        for name, value in data.items():
            field = self.fields.get(name)
            if field is None and name != LINKS:
                yield name, ["Unknown field."]
            elif field is not None and field.read_only and not self.shows(name, value):
                yield name, [self.explain_read_only(name)]

    def explain_read_only(self, name: str) -> str:
        """What is wrong with the value that a body has for a read-only field."""
        return "Read-only. Omit this field."

    def shows(self, name: str, value: object) -> bool:
        """Whether a read-only field has this value now: what was read may be sent back."""
        return False


def is_same(field: serializers.Field, shown: object, value: object) -> bool:
    """Whether a value of a body is the one that a field shows, however a client's JSON library writes it."""
    match field, shown, value:
        case serializers.ListSerializer(), list(), list():
            return len(shown) == len(value) and all(map(partial(is_same, field.child), shown, value))
        case serializers.Serializer(), dict(), dict():
            return shown.keys() == value.keys() and all(
                is_same(field.fields[name], shown[name], value[name]) for name in shown
            )
        case serializers.DateTimeField(), str(), str():
            return parse_time(shown) == parse_time(value)
    # True is equal to 1.
    return shown == value and isinstance(shown, bool) == isinstance(value, bool)


class ResourceSerializer(StrictSerializer, serializers.ModelSerializer):
    """A resource's representation, and the rules of writing it.

    On PUT an optional field that is left out returns to its model's default, but for write-only ones and those that
    stay unchanged if absent; in a merge patch null does the same (RFC 7396, section 2).
    """

    serializer_field_mapping: ClassVar[Mapping[type[models.Field], type[serializers.Field]]] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: CharField,
        models.TextField: CharField,
        models.EmailField: EmailField,
        models.BooleanField: BooleanField,
        models.IntegerField: IntegerField,
        models.BigIntegerField: IntegerField,
        models.DecimalField: MoneyField,
    }
    serializer_choice_field = ChoiceField
    # The example in the API's documentation, by the sources of the fields.
    example: ClassVar[Mapping[str, object]] = {}
    # Fields of the response that creates a resource, which no other response has.
    shown_once: ClassVar[Sequence[str]] = ()
    # Fields that only some methods take, and these methods.
    taken_by: ClassVar[Mapping[str, Collection[str]]] = {}
    # Fields that take long, a hash for one, and how many lines of one request may have them.
    max_lines_with: ClassVar[Mapping[str, int]] = {}
    # For read-only fields with several representations: which of them is the current value.
    read_only_hints: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: object, fields: Collection[str] | None = None, **options: object) -> None:
        """Makes a serializer.

        Args:
            fields: the names of the fields of the representation; None for all.
        """
        super().__init__(*args, **options)
        if fields is not None:
            for name in self.fields.keys() - set(fields):
                self.fields.pop(name)

    @property
    def principal(self) -> Principal | None:
        return self.context["principal"]

    def shows(self, name: str, value: object) -> bool:
        # A value that is shown only once is not present.
        is_present = self.instance is not None and name in self._present
        return is_present and is_same(self.fields[name], self._present[name], value)

    def explain_read_only(self, name: str) -> str:
        if self.instance is None:
            return super().explain_read_only(name)
        sentence = "Read-only, and the value differs from the current one. Omit this field."
        return f"{sentence} {self.read_only_hints[name]}" if name in self.read_only_hints else sentence

    def closed_fields(self) -> set[str]:
        """The writable fields that this caller may not set, on this row; what refuses them is the rules of writing."""
        return {name for name, field in self.fields.items() if getattr(field, "closed", False)}

    @cached_property
    def _present(self) -> Mapping[str, object]:
        """The row as a client reads it."""
        return json.loads(to_json(self.to_representation(self.instance)))

    def get_default_of(self, name: str) -> object:
        """The default of an optional field; `empty` when it has none to return to."""
        field = self.fields[name]
        if field.required or field.read_only or field.write_only or field.unchanged_if_absent:
            return empty
        return self.Meta.model._meta.get_field(name).get_default()

    def to_internal_value(self, data: Mapping[str, object]) -> dict[str, object]:
        given = data
        if self.partial:
            given = {
                name: default
                if value is None and name in self.fields and (default := self.get_default_of(name)) is not empty
                else value
                for name, value in data.items()
            }
        values = super().to_internal_value(given)
        if self.instance is not None and not self.partial:
            for name in self.fields:
                if name not in data and (default := self.get_default_of(name)) is not empty:
                    values[name] = default
        return values

    def create_many(self, many: Sequence[Mapping[str, Any]]) -> Sequence[models.Model | DomainError]:
        """Adds rows by one statement, as `create` adds each: a serializer with its own `create` may have its own.

        Args:
            many: the validated data of each.

        Returns:
            The rows, in this order; in the place of one that conflicts with another row, the CONFLICT.
        """
        if type(self).create is not serializers.ModelSerializer.create:
            return [self.create(dict(values)) for values in many]
        model = self.Meta.model
        rows = build_rows(model, many)
        model._default_manager.bulk_create(rows)
        return rows

    def find_conflicts(self, lines: Sequence[Mapping[str, object]]) -> Sequence[Sequence[Detail]]:
        """The fields in which each line conflicts with rows, or with earlier lines, whatever else is wrong with it."""
        return [()] * len(lines)

    def update(self, instance: Any, validated_data: dict[str, object]) -> Any:
        """Writes the columns that change and no other: a concurrent write to the rest stays. Reads what triggers made.

        Args:
            instance: as it was read under its lock, so that nothing changes what is compared here.
            validated_data: new values by the names of columns. Present values leave the row's version as it is.
        """
        changes = {name: value for name, value in validated_data.items() if getattr(instance, name) != value}
        if changes:
            for name, value in changes.items():
                setattr(instance, name, value)
            instance.save(update_fields=list(changes))
            instance.refresh_from_db()
        return instance


class RepresentationBackend:
    """The interface of REPRESENTATION_BACKEND: represents rows."""

    def represent(self, view: Any, rows: Sequence[Any]) -> Sequence[Representation]:
        """The representations of rows of a viewset, in the fields that were asked for."""
        return view.get_serializer(rows, many=True, fields=view.chosen_fields).data
