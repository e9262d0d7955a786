"""Serializers that take JSON as it is: unknown names are refused, and a write touches nothing but what was sent."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import empty

from config.api.principal import Principal
from config.api.representation.fields import (
    BooleanField,
    CharField,
    ChoiceField,
    EmailField,
    IntegerField,
    MoneyField,
    StrictField,
)
from config.api.representation.links import LINKS
from config.api.versions.table import Change, has
from config.http.json import to_json

MAX_NAMES_TOLD = 100


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses names that it does not know, and read-only fields that differ, from the version on that says so."""

    def to_internal_value(self, data: Any) -> Any:
        strict = has(self.context["version"], Change.NO_UNKNOWN_NAMES)
        # Not all of them: a body of a hundred thousand names would take seconds, and get an answer of megabytes.
        problems: dict[str, Any] = dict(islice(self._find_unwritable(data), MAX_NAMES_TOLD)) if strict else {}
        try:
            values = self.validate_fields(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**problems, **error.detail}) from None
        if problems:
            raise serializers.ValidationError(problems)
        return values

    def validate_fields(self, data: Mapping[str, Any]) -> Any:
        """The values of the writable fields: DRF's `to_internal_value`."""
        return super().to_internal_value(data)

    def _find_unwritable(self, data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
        for name, value in data.items():
            field = self.fields.get(name)
            if field is None and name != LINKS:
                yield name, ["There is no such field."]
            elif field is not None and field.read_only and not self.shows(name, value):
                yield name, ["Is read-only."]

    def shows(self, name: str, value: Any) -> bool:
        """Whether a read-only field has this value now: what was read may be sent back."""
        return False


class ResourceSerializer(StrictSerializer, serializers.ModelSerializer[Any]):
    """A resource's representation, and the rules of writing it.

    On PUT an optional field that is left out returns to its model's default, but for write-only ones and those that
    stay unchanged if absent; in a merge patch null does the same (RFC 7396, section 2).
    """

    serializer_field_mapping: ClassVar[
        dict[type[models.Field[Any, Any]], type[serializers.Field[Any, Any, Any, Any]]]
    ] = {
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
    # What the API's documentation shows, by the sources of the fields.
    example: ClassVar[Mapping[str, Any]] = {}
    # Fields of the response that creates a resource, which no other response has.
    shown_once: ClassVar[Sequence[str]] = ()

    def __init__(self, *args: Any, fields: Collection[str] | None = None, **options: Any) -> None:
        """Makes a serializer.

        Args:
            fields: the names of the fields that the representation shall have; None for all.
        """
        super().__init__(*args, **options)
        if fields is not None:
            for name in self.fields.keys() - set(fields):
                self.fields.pop(name)

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

    def _get_default(self, name: str) -> Any:
        """The default of an optional field; `empty` when it has none to return to."""
        field = self.fields[name]
        if field.required or field.read_only or field.write_only or field.unchanged_if_absent:
            return empty
        return self.Meta.model._meta.get_field(name).get_default()

    def to_internal_value(self, data: Any) -> Any:
        given = data
        if self.partial:
            given = {
                name: default
                if value is None and name in self.fields and (default := self._get_default(name)) is not empty
                else value
                for name, value in data.items()
            }
        values = super().to_internal_value(given)
        if self.instance is not None and not self.partial:
            for name in self.fields:
                if name not in data and (default := self._get_default(name)) is not empty:
                    values[name] = default
        return values

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        """Writes the given columns and no other: a concurrent write to the rest stays. Reads what triggers made."""
        if validated_data:
            for name, value in validated_data.items():
                setattr(instance, name, value)
            instance.save(update_fields=list(validated_data))
            instance.refresh_from_db()
        return instance
