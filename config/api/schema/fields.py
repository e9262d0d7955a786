"""JSON Schema objects, and the bounds that neither the column nor the serializer of a field declares."""

from django.conf import settings
from rest_framework.serializers import Field, ListField

from config.api.representation.fields import MAX_ID, CharField
from config.api.representation.text import INVISIBLE
from config.http.json import JSONObject
from config.http.middleware import MAX_REQUEST_ID_LENGTH, SANE_REQUEST_ID

MAX_INT32 = 2**31 - 1
# RFC 3339 with nanoseconds and an offset.
MAX_TIME_LENGTH = 35
MAX_LIST_ITEMS = 100
_CONTROL = r"\u0000-\u001f\u007f-\u009f"
_CONTROL_EXCEPT_LINE_BREAKS = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"
PRINTABLE = f"^[^{_CONTROL}]*$"
# Visible ASCII, as keys and tokens are made of.
TOKEN = "^[!-~]+$"
PATH = "^[!-~]*$"


def build_string(max_length: int, pattern: str = PRINTABLE, **keywords: object) -> JSONObject:
    """A string schema.

    Args:
        max_length: in characters.
        pattern: a regular expression of ECMA-262, anchored.
        keywords: further keywords of JSON Schema, which win over these.

    Returns:
        The schema.
    """
    return {"type": "string", "maxLength": max_length, "pattern": pattern, **keywords}


def build_integer(minimum: int = 0, maximum: int = MAX_ID, **keywords: object) -> JSONObject:
    """An integer schema, whose `format` follows from the maximum.

    Args:
        minimum: the least value, inclusive.
        maximum: the greatest value, inclusive.
        keywords: further keywords of JSON Schema, which win over these.

    Returns:
        The schema.
    """
    size = "int32" if maximum <= MAX_INT32 else "int64"
    return {"type": "integer", "format": size, "minimum": minimum, "maximum": maximum, **keywords}


REQUEST_ID = build_string(MAX_REQUEST_ID_LENGTH, f"^{SANE_REQUEST_ID.pattern}$")


def build_object(properties: JSONObject, optional: tuple[str, ...] = (), **keywords: object) -> JSONObject:
    """The schema of an object of an answer. It is open: an answer may get further properties without a new version.

    Args:
        properties: the schema of each property.
        optional: the properties that are not required.
        keywords: further keywords of JSON Schema, which win over these.

    Returns:
        The schema.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        **keywords,
    }


def add_bounds(field: Field, schema: JSONObject) -> None:
    """Completes the bounds of a field.

    Args:
        field: a field that is bound to its serializer.
        schema: what drf-spectacular derived from it; changed in place.
    """
    types = schema.get("type", ())
    if "integer" in types:
        name = str(field.field_name)
        minimum = schema.get("minimum", 1 if name == "id" or name.endswith("_id") else 0)
        schema.update(build_integer(minimum, schema.get("maximum", MAX_ID), type=schema["type"]))
    elif "string" in types and "enum" not in schema:
        _add_string_bounds(field, schema)
    elif "array" in types and isinstance(field, ListField):
        schema.setdefault("maxItems", field.max_length or MAX_LIST_ITEMS)


def _get_column_max_length(field: Field) -> int | None:
    """The length of the field's column, which DRF puts on a writable field only."""
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    columns = {column.name: column for column in model._meta.get_fields()} if model else {}
    return getattr(columns.get(field.source), "max_length", None)


def _add_string_bounds(field: Field, schema: JSONObject) -> None:
    if schema.get("format") == "email":
        # A domain may be internationalised, which `email` excludes.
        schema["format"] = "idn-email"
    is_time = schema.get("format") in {"date-time", "date"}
    max_length = MAX_TIME_LENGTH if is_time else _get_column_max_length(field) or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    schema.setdefault("maxLength", max_length)
    if is_time or "pattern" in schema:
        return
    control = _CONTROL_EXCEPT_LINE_BREAKS if isinstance(field, CharField) and field.lines else _CONTROL
    # A string that may not be empty may not be blank either.
    content = f"[^{control}]*[^{control}\\s{INVISIBLE}][^{control}]*" if schema.get("minLength") else f"[^{control}]*"
    schema["pattern"] = f"^{content}$"
