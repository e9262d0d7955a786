"""The forms of the browsable API: the fields of a view's serializer, and the methods that the caller may use.

config/static/config/browsable.js sends a form as JSON. Each value is in the form twice: as the text of its control, and
as its original JSON, which is sent again unless the text is edited. So JavaScript never parses a number.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import TypeAlias

from django.db.models import Model
from rest_framework.exceptions import APIException
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request, override_method
from rest_framework.serializers import Field, Serializer
from rest_framework.views import APIView

from config.api.representation.fields import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    EmailField,
    IntegerField,
    MoneyField,
    MultiChoiceField,
)
from config.api.representation.serializers import ResourceSerializer
from config.api.requests import METHODS_WITH_BODY, JSONParser, MergePatchParser
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import DomainError
from config.http.json import to_json

VERBS = {"POST": "Create", "PUT": "Replace", "PATCH": "Change", "DELETE": "Delete", "OPTIONS": "Describe"}
_ROW_METHODS = frozenset({"PUT", "PATCH", "DELETE"})

Data: TypeAlias = Mapping[str, object]


def build_forms(view: APIView, data: Data | None) -> Iterator[Data]:
    """The forms of the methods that the caller may use at the view's address, as config/browsable_form.html shows them.

    Args:
        view: the view that responded.
        data: the whole representation of the row that it responded with, if it was a row.

    Yields:
        The forms, in the order of VERBS.
    """
    request, row = view.request, getattr(view, "row", None)
    # Without a version none could be determined: it is unknown, or two contradict each other.
    # A view that responds 405 has not authenticated. That has to happen before `override_method`: authentication by a
    # session asks a POST for its CSRF token.
    if not hasattr(request, "version") or _is_refused(lambda: request.auth):
        return
    for method in VERBS:
        needs_row = method in _ROW_METHODS
        if method not in view.allowed_methods or (needs_row and (row is None or data is None)):
            continue
        with override_method(view, request, method) as overridden:
            if not _is_refused(partial(_check, view, overridden, row if needs_row else None)):
                yield _build_form(view, method, row if needs_row else None, data)


def _is_refused(check: Callable[[], object]) -> bool:
    try:
        check()
    except (DomainError, APIException):
        return True
    return False


def _check(view: APIView, request: Request, row: Model | None) -> None:
    """Raises what the view answers to the caller's request for a method, as far as that can be known."""
    view.check_permissions(request)
    if row is not None:
        view.check_object_permissions(request, row)
    elif request.method == "POST" and isinstance(view, ResourceViewSet) and getattr(view, "parent_id", None):
        view.check_parent()


def _build_form(view: APIView, method: str, row: Model | None, data: Data | None) -> Data:
    takes_body = method in METHODS_WITH_BODY
    controls = _build_controls(_get_serializer(view, row), data if row is not None else None) if takes_body else ()
    creates = method == "POST" and isinstance(view, ResourceViewSet)
    policy = view.idempotency if creates else KeyPolicy.IGNORED
    return {
        "method": method,
        # A login is sent, and creates no resource.
        "verb": "Send" if method == "POST" and not creates else VERBS[method],
        # A merge patch leaves omitted fields unchanged.
        "controls": [{**control, "required": False} if method == "PATCH" else control for control in controls],
        "takes_body": takes_body,
        "content_type": (MergePatchParser if method == "PATCH" else JSONParser).media_type,
        "conditional": method in _ROW_METHODS,
        "takes_key": policy in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED},
        "needs_key": policy is KeyPolicy.REQUIRED,
    }


def _get_serializer(view: APIView, row: Model | None) -> Serializer:
    if isinstance(view, GenericAPIView):
        return view.get_serializer(row)
    context = {"version": view.request.version, "principal": view.request.auth}
    return view.serializer_class(context=context)


def _build_controls(serializer: Serializer, data: Data | None) -> Iterator[Data]:
    """A control of each field that the caller may set. Its `original` is the value as JSON; None without a value."""
    closed = serializer.closed_fields() if isinstance(serializer, ResourceSerializer) else ()
    present = data or {}
    for name, field in serializer.fields.items():
        if field.read_only or name in closed:
            continue
        value = present.get(name)
        original = to_json(value).decode() if name in present else None
        shown = "" if value is None else value if isinstance(value, str | list) else original
        yield {
            "name": name,
            "required": field.required,
            "hint": field.help_text or "",
            "value": shown,
            "original": original,
            **_build_widget(name, field),
        }


def _build_widget(name: str, field: Field) -> Mapping[str, object]:
    """The HTML element of a control, and its kind: how its text becomes JSON.

    `string` is quoted, `raw` is JSON already, and `list` has a box for each choice.
    """
    match field:
        case MultiChoiceField():
            return {"kind": "list", "widget": "boxes", "choices": field.choices}
        case ChoiceField():
            return {"kind": "string", "widget": "select", "choices": list(field.choices)}
        case BooleanField():
            return {"kind": "raw", "widget": "select", "choices": ("true", "false")}
        case CharField(lines=True):
            return {"kind": "string", "widget": "textarea", "attributes": {"rows": 5, "maxlength": field.max_length}}
        case IntegerField() | MoneyField(as_text=False):
            step = 1 if isinstance(field, IntegerField) else Decimal("0.01")
            attributes = {"type": "number", "min": field.min_value, "max": field.max_value, "step": step}
            return {"kind": "raw", "attributes": attributes}
        case MoneyField():
            attributes = {"type": "text", "inputmode": "decimal"}
        case DateTimeField():
            attributes = {"type": "text", "placeholder": "2030-01-31T12:00:00Z"}
        case _:
            # Not the type `email`: browsers trim such a text and change the letters of its domain.
            mode = "email" if isinstance(field, EmailField) else None
            max_length = field.max_length if isinstance(field, CharField) else None
            kind = "password" if name.endswith("password") else "text"
            attributes = {"type": kind, "inputmode": mode, "maxlength": max_length}
    return {"kind": "string", "attributes": attributes}
