"""Representations of rows, compiled from serializers.

A serializer is made anew for each request, with a copy of every field, and asks each field about each row: most of the
time that a read takes. What it does to a row depends on its declarations alone where it is made of the fields below,
so these are read once. Any other serializer is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import lru_cache
from operator import attrgetter, methodcaller
from typing import Any

from django.db.models import CharField, Field, IntegerField, TextField
from django.db.models.manager import BaseManager
from rest_framework import serializers
from rest_framework.fields import BigIntegerField
from rest_framework.settings import api_settings

from config.api.representation.serializers import Money, ResourceSerializer
from config.api.versions.table import Version

Conversion = Callable[[Any], Any]
Renderer = Callable[[Iterable[Any]], list[dict[str, Any]]]


# Clients choose the names: there are more choices than a process should remember.
@lru_cache(maxsize=1024)
def renderer(
    serializer_class: type[ResourceSerializer], version: Version | None, names: frozenset[str]
) -> Renderer | None:
    """What makes of rows the named fields, as the serializer's `to_representation` does; None if it must do so itself.

    Times are left to the JSON encoder, which writes them as DRF does.
    """
    return _renderer(serializer_class(context={"version": version}), names)


@lru_cache(maxsize=1024)
def attributes(serializer_class: type[ResourceSerializer], names: frozenset[str]) -> frozenset[str] | None:
    """What of a row is looked at for the named fields; None if it is not known."""
    plan = _plan(serializer_class(), names)
    return None if plan is None else frozenset(attribute for _, attribute, _ in plan)


def _renderer(serializer: Any, names: frozenset[str]) -> Renderer | None:
    plan = _plan(serializer, names)
    if not plan:
        return None
    shown, looked_at, _ = zip(*plan, strict=True)
    converted = [(name, conversion) for name, _, conversion in plan if conversion]
    # Once more the first: of a single attribute an attrgetter gives no tuple.
    values = attrgetter(*looked_at, looked_at[0])

    def render(rows: Iterable[Any]) -> list[dict[str, Any]]:
        made = []
        for row in rows:
            representation = dict(zip(shown, values(row)))  # noqa: B905 - it ends before what is there once more
            for name, conversion in converted:
                value = representation[name]
                if value is not None:
                    representation[name] = conversion(value)
            made.append(representation)
        return made

    return render


def _plan(serializer: Any, names: frozenset[str]) -> Sequence[tuple[str, str, Conversion | None]] | None:
    """Of each named field its name, the attribute of a row that it shows, and what it makes of that, if it does."""
    kind = type(serializer)
    if kind.to_representation is not serializers.Serializer.to_representation:
        return None
    if kind.get_fields is not serializers.ModelSerializer.get_fields:
        return None
    plan = []
    for field in serializer.fields.values():
        if field.write_only or field.field_name not in names:
            continue
        conversion = _conversion(field)
        if conversion is None or len(field.source_attrs) != 1:
            return None
        attribute = field.source_attrs[0]
        plan.append((field.field_name, attribute, None if _is_kept(serializer, attribute, conversion) else conversion))
    return plan


# What a column of such a kind holds is what the conversion makes of it.
_KEPT: dict[Any, tuple[type[Field[Any, Any]], ...]] = {str: (CharField, TextField), int: (IntegerField,)}


def _is_kept(serializer: Any, attribute: str, conversion: Conversion) -> bool:
    for column in serializer.Meta.model._meta.concrete_fields:
        if column.attname == attribute and not hasattr(column, "from_db_value"):
            return isinstance(column, _KEPT.get(conversion, ()))
    return False


def _conversion(field: Any) -> Conversion | None:
    """What a field does to a value; None for a field with a way of its own."""
    if type(field).get_attribute is not serializers.Field.get_attribute:
        return None
    make = _CONVERSIONS.get(type(field).to_representation)
    return make and make(field)


def _choice(field: Any) -> Conversion:
    values = field.choice_strings_to_values
    if all(type(text) is str for text in values.values()):
        # What stands for each is itself. A column of text holds nothing else, though it may not be among them.
        return str
    return lambda value: values.get(str(value), value)


def _big_integer(field: Any) -> Conversion:
    return str if getattr(field, "coerce_to_string", api_settings.COERCE_BIGINT_TO_STRING) else int


def _many(field: Any) -> Conversion | None:
    render = _renderer(field.child, frozenset(field.child.fields))
    return render and (lambda rows: render(rows.all() if isinstance(rows, BaseManager) else rows))


# By the very function, so that a field class that has another one is not mistaken for its parent.
_CONVERSIONS: dict[Any, Callable[[Any], Conversion | None]] = {
    serializers.CharField.to_representation: lambda field: str,
    serializers.IntegerField.to_representation: lambda field: int,
    BigIntegerField.to_representation: _big_integer,
    serializers.ReadOnlyField.to_representation: lambda field: field.to_representation,
    serializers.ChoiceField.to_representation: _choice,
    serializers.DateTimeField.to_representation: lambda field: methodcaller("astimezone", UTC),
    serializers.ListSerializer.to_representation: _many,
    # Of the context it looks at the version alone.
    Money.to_representation: lambda field: field.to_representation,
}
