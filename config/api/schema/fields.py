"""Bounds: what a field may hold, where neither its column nor its serializer says so."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from config.api.representation.serializers import GREATEST_ID, Text
from config.http.middleware import LONGEST_REQUEST_ID, SANE_REQUEST_ID

INT32 = 2**31 - 1
# RFC 3339 with microseconds and an offset.
LONGEST_TIME = 32
_CONTROL = r"\u0000-\u001f\u007f-\u009f"
_CONTROL_BUT_LINES = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"
PRINTABLE = f"^[^{_CONTROL}]*$"
# Visible ASCII, as keys and tokens are made of.
TOKEN = "^[!-~]+$"
PATH = "^[!-~]*$"


def text(longest: int, pattern: str = PRINTABLE, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, "pattern": pattern, **more}


def integer(least: int = 0, greatest: int = GREATEST_ID, **more: Any) -> dict[str, Any]:
    size = "int32" if greatest <= INT32 else "int64"
    return {"type": "integer", "format": size, "minimum": least, "maximum": greatest, **more}


REQUEST_ID = text(LONGEST_REQUEST_ID, f"^{SANE_REQUEST_ID.pattern}$")


def closed(properties: dict[str, Any], optional: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """An object of these properties and no other, all there but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def bound(field: Any, schema: dict[str, Any]) -> None:
    """Completes the bounds of one field, in place."""
    kinds = schema.get("type", ())
    if "integer" in kinds:
        name = str(field.field_name)
        least = schema.get("minimum", 1 if name == "id" or name.endswith("_id") else 0)
        schema.update(integer(least, schema.get("maximum", GREATEST_ID)))
    elif "string" in kinds and "enum" not in schema:
        _bound_text(field, schema)
    elif "array" in kinds and isinstance(field, serializers.ListField):
        schema.setdefault("maxItems", field.max_length or 100)


def _longest_in_column(field: Any) -> int | None:
    """What DRF leaves out of a read-only field."""
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    columns = {column.name: column for column in model._meta.get_fields()} if model else {}
    return getattr(columns.get(field.source), "max_length", None)


def _bound_text(field: Any, schema: dict[str, Any]) -> None:
    if schema.get("format") == "email":
        # A domain may have any letters.
        schema["format"] = "idn-email"
    timed = schema.get("format") in {"date-time", "date"}
    longest = LONGEST_TIME if timed else _longest_in_column(field) or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    schema.setdefault("maxLength", longest)
    if timed or "pattern" in schema:
        return
    control = _CONTROL_BUT_LINES if isinstance(field, Text) and field.lines else _CONTROL
    # A text that may not be empty may not be blank either.
    blank = f"[^{control}]*[^{control}\\s][^{control}]*" if schema.get("minLength") else f"[^{control}]*"
    schema["pattern"] = f"^{blank}$"
