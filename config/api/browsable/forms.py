"""The forms of the browsable API: the fields of a view's serializer, and the methods that the caller may use.

config/static/config/browsable.js sends a form as JSON. Each value is in the form twice: as the text of its control, and
as its original JSON, which is sent again unless the text is edited. So JavaScript never parses a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
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
from config.api.requests import JSONParser, MergePatchParser
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import DomainError
from config.http.json import to_json

VERBS = {"POST": "Create", "PUT": "Replace", "PATCH": "Change", "DELETE": "Delete", "OPTIONS": "Describe"}
_ROW_METHODS = frozenset({"PUT", "PATCH", "DELETE"})

Data: TypeAlias = Mapping[str, object]


@dataclass(slots=True)
class Control:
    """One field of a form.

    Attributes:
        kind: how its text becomes JSON: `string` is quoted, `raw` is JSON already, `list` has a box for each choice.
        widget: `input`, `textarea`, `select` or `boxes`.
        value: the initial text; of a list, the chosen items.
        original: the value as JSON, None where the row has none.
        attributes: of the HTML element, such as its bounds.
    """

    name: str
    kind: str = "string"
    widget: str = "input"
    required: bool = False
    value: str | Sequence[object] = ""
    original: str | None = None
    hint: str = ""
    choices: Sequence[str] = ()
    attributes: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Form:
    """How a method is sent.

    Attributes:
        takes_key: whether it takes an Idempotency-Key.
        needs_key: whether it must have one.
    """

    method: str
    verb: str
    controls: Sequence[Control] = ()
    takes_body: bool = False
    takes_key: bool = False
    needs_key: bool = False

    @property
    def conditional(self) -> bool:
        return self.method in _ROW_METHODS

    @property
    def content_type(self) -> str:
        return MergePatchParser.media_type if self.method == "PATCH" else JSONParser.media_type


def build_forms(view: APIView, data: Data | None) -> Iterator[Form]:
    """The forms of the methods that the caller may use at the view's address.

    Args:
        view: the view that responded.
        data: the whole representation of the row that it responded with, if it was a row.

    Yields:
        The forms, in the order of VERBS.
    """
    request, row = view.request, getattr(view, "row", None)
    # Without a version none could be determined: it is unknown, or two contradict each other.
    if not hasattr(request, "version") or not _is_authenticated(request):
        return
    for method in VERBS:
        needs_row = method in _ROW_METHODS
        if method not in view.allowed_methods or (needs_row and (row is None or data is None)):
            continue
        with override_method(view, request, method) as overridden:
            if _may_send(view, overridden, row if needs_row else None):
                yield _build_form(view, method, row if needs_row else None, data)


def _is_authenticated(request: Request) -> bool:
    """Whether the credential of the request, if it has one, is valid.

    A view that responds 405 has not authenticated. That has to happen before `override_method`: authentication by a
    session asks a POST for its CSRF token.
    """
    try:
        _ = request.auth
    except (DomainError, APIException):
        return False
    return True


def _may_send(view: APIView, request: Request, row: Model | None) -> bool:
    try:
        view.check_permissions(request)
        if row is not None:
            view.check_object_permissions(request, row)
        elif request.method == "POST" and isinstance(view, ResourceViewSet) and getattr(view, "parent_id", None):
            view.check_parent()
    except (DomainError, APIException):
        return False
    return True


def _build_form(view: APIView, method: str, row: Model | None, data: Data | None) -> Form:
    form = Form(method, VERBS[method])
    if method in {"POST", "PUT", "PATCH"}:
        form.takes_body = True
        form.controls = list(_build_controls(_get_serializer(view, row), data if row is not None else None))
    if method == "PATCH":
        # A merge patch leaves omitted fields unchanged.
        form.controls = [replace(control, required=False) for control in form.controls]
    if method == "POST" and isinstance(view, ResourceViewSet):
        form.takes_key = view.idempotency in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED}
        form.needs_key = view.idempotency is KeyPolicy.REQUIRED
    elif method == "POST":
        # A login is sent, and creates no resource.
        form.verb = "Send"
    return form


def _get_serializer(view: APIView, row: Model | None) -> Serializer:
    if isinstance(view, GenericAPIView):
        return view.get_serializer(row)
    context = {"version": view.request.version, "principal": view.request.auth}
    return view.serializer_class(context=context)


def _build_controls(serializer: Serializer, data: Data | None) -> Iterator[Control]:
    closed = serializer.closed_fields() if isinstance(serializer, ResourceSerializer) else ()
    for name, declared in serializer.fields.items():
        if declared.read_only or name in closed:
            continue
        control = Control(name, required=declared.required, hint=str(declared.help_text or ""))
        _add_widget(control, declared)
        if data is not None and name in data:
            control.value, control.original = _format_value(data[name]), to_json(data[name]).decode()
        yield control


def _add_widget(control: Control, declared: Field) -> None:
    """Sets the kind, the widget and the attributes of a control by the class of its field."""
    attributes = control.attributes
    match declared:
        case MultiChoiceField():
            control.kind, control.widget, control.choices = "list", "boxes", declared.choices
        case ChoiceField():
            control.widget, control.choices = "select", list(declared.choices)
        case BooleanField():
            control.kind, control.widget, control.choices = "raw", "select", ("true", "false")
        case MoneyField() if declared.as_text:
            attributes |= {"type": "text", "inputmode": "decimal"}
        case IntegerField() | MoneyField():
            control.kind = "raw"
            step = 1 if isinstance(declared, IntegerField) else Decimal("0.01")
            attributes |= {"type": "number", "min": declared.min_value, "max": declared.max_value, "step": step}
        case DateTimeField():
            attributes |= {"type": "text", "placeholder": "2030-01-31T12:00:00Z"}
        case CharField(lines=True):
            control.widget = "textarea"
            attributes |= {"rows": 5}
        case _:
            # Not the type `email`: browsers trim such a text and change the letters of its domain.
            mode = "email" if isinstance(declared, EmailField) else None
            attributes |= {"type": "password" if control.name.endswith("password") else "text", "inputmode": mode}
    if isinstance(declared, CharField):
        attributes["maxlength"] = declared.max_length
    control.attributes = {name: value for name, value in attributes.items() if value is not None}


def _format_value(value: object) -> str | Sequence[object]:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case list():
            return value
    return str(value)
