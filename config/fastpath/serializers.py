"""Serializers as plain functions of a row, and fields that are bound once for a class.

Replaces: `to_representation`, and the copy of every field that DRF makes for each serializer. Buys: most of the time
that a read takes; four fifths of the validation of a small body. What a serializer does to a row depends on its
declarations alone where it is made of the fields below; any other serializer is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC
from functools import cache, lru_cache
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import CharField, IntegerField, Model, TextField
from django.db.models import Field as Column
from django.db.models.manager import BaseManager
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import BigIntegerField, Field, SkipField, empty, get_error_detail
from rest_framework.generics import GenericAPIView
from rest_framework.serializers import BaseSerializer
from rest_framework.settings import api_settings
from rest_framework.utils.serializer_helpers import BindingDict

from config.api.representation.fields import MoneyField, StrictField
from config.api.representation.serializers import Representation, RepresentationBackend, ResourceSerializer
from config.api.versions.table import Version
from config.http.json import UnusableNumber

if TYPE_CHECKING:
    # The class that the mixin is combined with.
    _Serializer = ResourceSerializer
else:
    _Serializer = object

# Converts the values of a field, whose type the field knows.
Conversion = Callable[[Any], Any]


class Renderer(NamedTuple):
    """Makes representations of rows.

    Attributes:
        render: the function of rows.
        attributes: of a row, all that the function reads.
    """

    render: Callable[[Iterable[Model]], list[Representation]]
    attributes: frozenset[str]


# Clients choose the names: there are more choices than a process should remember.
@lru_cache(maxsize=1024)
def get_renderer(
    serializer_class: type[ResourceSerializer], version: Version | None, names: frozenset[str]
) -> Renderer | None:
    """A function that represents rows by the named fields, as `to_representation` does; None if only that can do it.

    Times are left to the JSON encoder, which writes them as DRF does.
    """
    return _build_renderer(serializer_class(context={"version": version}), names)


class CompiledRepresentation(RepresentationBackend):
    """REPRESENTATION_BACKEND, by compiled serializers."""

    def represent(self, view: Any, rows: Sequence[Model]) -> Sequence[Representation]:
        is_stock = type(view).get_serializer is GenericAPIView.get_serializer
        renderer = (
            get_renderer(view.get_serializer_class(), view.request.version, view.field_names) if is_stock else None
        )
        return renderer.render(rows) if renderer else super().represent(view, rows)


def _build_renderer(serializer: BaseSerializer, names: frozenset[str]) -> Renderer | None:
    if not _has_stock_methods(type(serializer)):
        return None
    plan: list[tuple[str, str, Conversion]] = []
    for field in serializer.fields.values():
        if field.write_only or field.field_name not in names:
            continue
        conversion = _get_conversion(field)
        if conversion is None or len(field.source_attrs) != 1:
            return None
        plan.append((field.field_name, field.source_attrs[0], conversion))
    if not plan:
        return None
    shown, looked_at, _ = zip(*plan, strict=True)
    converted = [
        (name, conversion)
        for name, attribute, conversion in plan
        if not _is_unchanged(serializer, attribute, conversion)
    ]
    # Once more the first: of a single attribute an attrgetter gives no tuple.
    values = attrgetter(*looked_at, looked_at[0])

    def render(rows: Iterable[Model]) -> list[Representation]:
        representations = [
            dict(zip(shown, values(row)))  # noqa: B905 - it ends before the attribute that is there once more
            for row in rows
        ]
        for name, conversion in converted:
            for representation in representations:
                value = representation[name]
                if value is not None:
                    representation[name] = conversion(value)
        return representations

    return Renderer(render, frozenset(looked_at))


def _has_stock_methods(kind: type[BaseSerializer]) -> bool:
    stock = serializers.ModelSerializer
    return kind.to_representation is stock.to_representation and kind.get_fields is stock.get_fields


# For a column of such a class, the conversion returns the value itself.
_UNCHANGED: Mapping[Conversion, tuple[type[Column], ...]] = {str: (CharField, TextField), int: (IntegerField,)}


def _is_unchanged(serializer: BaseSerializer, attribute: str, conversion: Conversion) -> bool:
    for column in serializer.Meta.model._meta.concrete_fields:
        if column.attname == attribute and not hasattr(column, "from_db_value"):
            return isinstance(column, _UNCHANGED.get(conversion, ()))
    return False


def _get_conversion(field: Field) -> Conversion | None:
    """How a field converts a value; None for a field with its own `to_representation`."""
    if type(field).get_attribute is not serializers.Field.get_attribute:
        return None
    make = _CONVERSIONS.get(type(field).to_representation)
    return make and make(field)


def _choice(field: Field) -> Conversion:
    values = field.choice_strings_to_values
    if all(type(text) is str for text in values.values()):
        # Each value is its own representation. So is any other text that the column holds.
        return str
    return lambda value: values.get(str(value), value)


def _big_integer(field: Field) -> Conversion:
    return str if getattr(field, "coerce_to_string", api_settings.COERCE_BIGINT_TO_STRING) else int


def _many(field: Field) -> Conversion | None:
    renderer = _build_renderer(field.child, frozenset(field.child.fields))
    return renderer and (lambda rows: renderer.render(rows.all() if isinstance(rows, BaseManager) else rows))


# Keyed by the very function, so that a field class with its own is not mistaken for its parent.
_CONVERSIONS: Mapping[Callable, Callable[[Field], Conversion | None]] = {
    serializers.CharField.to_representation: lambda field: str,
    serializers.IntegerField.to_representation: lambda field: int,
    BigIntegerField.to_representation: _big_integer,
    serializers.ReadOnlyField.to_representation: lambda field: field.to_representation,
    serializers.ChoiceField.to_representation: _choice,
    serializers.DateTimeField.to_representation: lambda field: methodcaller("astimezone", UTC),
    serializers.ListSerializer.to_representation: _many,
    # It reads only the version from the context.
    MoneyField.to_representation: lambda field: field.to_representation,
}


# --- Validation


@cache
def accelerate(serializer_class: type[BaseSerializer]) -> type[BaseSerializer]:
    """The serializer class of an accelerated viewset with fields that are bound once; none makes them otherwise."""
    return type(serializer_class.__name__, (_FastSerializerMixin, serializer_class), {"__module__": __name__})


class _FastSerializerMixin(_Serializer):
    """DRF's serializer, except that what depends on the class alone is made once."""

    initial_data: object

    def __init__(self, instance: Model | None = None, data: object = empty, **options: Any) -> None:
        if "context" in options and options.keys() <= {"context", "partial"}:
            # Any, here and below: mypy takes no subclass of an untyped class for hashable.
            kind: Any = type(self)
            self.__dict__.update(_get_blank(kind), instance=instance, _context=options["context"])
            self.partial = options.get("partial", False)
            if data is not empty:
                self.initial_data = data
        else:
            super().__init__(instance, data, **options)

    @cached_property
    def fields(self) -> BindingDict:
        kind: Any = type(self)
        bound = BindingDict(self)
        for name, field, attributes in _get_fields(kind):
            if attributes is None:
                # Fields inside it must refer to this serializer, too.
                bound[name] = deepcopy(field)
            else:
                bound.fields[name] = copied = object.__new__(type(field))
                vars(copied).update(attributes, parent=self)
        return bound

    def get_validators(self) -> list[Callable]:
        kind: Any = type(self)
        return list(_get_validators(kind))

    def run_validators(self, value: object) -> None:
        # DRF first asks each read-only field for its default, which only a validator uses.
        if self.validators:
            super().run_validators(value)

    def validate_fields(self, data: Mapping[str, object]) -> dict[str, object]:
        values: dict[str, object] = {}
        problems: dict[str, object] = {}
        for name, field in self.fields.fields.items():
            if field.read_only:
                continue
            validate = getattr(self, f"validate_{name}", None)
            try:
                value = _validate(field, field.get_value(data))
                if validate is not None:
                    value = validate(value)
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


def _validate(field: Field, data: object) -> object:
    """A field's `run_validation`, around what DRF asks about empty values where there is one."""
    if data is empty or data is None or type(field).run_validation is not StrictField.run_validation:
        return field.run_validation(data)
    if isinstance(data, UnusableNumber):
        return field.run_validation(data)
    value = field.to_internal_value(data)
    field.run_validators(value)
    return value


@cache
def _get_fields(kind: type[BaseSerializer]) -> Sequence[tuple[str, Field, Mapping[str, object] | None]]:
    """The fields of a class, bound to a serializer that does nothing else; with the attributes of a plain one."""
    fields = serializers.Serializer.fields.func(kind()).fields.items()
    return [(name, field, vars(field) if _is_plain(field) else None) for name, field in fields]


def _is_plain(field: Field) -> bool:
    """Whether it knows nothing of a serializer but that this is its parent."""
    has_fields = isinstance(field, serializers.BaseSerializer) or hasattr(field, "child")
    return not has_fields and type(field).bind is serializers.Field.bind


@cache
def _get_blank(kind: type[BaseSerializer]) -> Mapping[str, object]:
    """What DRF builds for a serializer without arguments."""
    made = object.__new__(kind)
    serializers.BaseSerializer.__init__(made)
    return vars(made)


@cache
def _get_validators(kind: type[BaseSerializer]) -> Sequence[Callable]:
    return serializers.ModelSerializer.get_validators(kind())
