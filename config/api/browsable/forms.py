"""The forms of the browsable API: what a view takes, as its serializer says it, and what this caller may send.

A form is sent as JSON by config/static/config/browsable.js. A value stands in it twice: as the text of its control,
and as the JSON that it came in, which is sent again unless somebody changes the text. So no number is ever read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rest_framework.exceptions import APIException
from rest_framework.request import override_method
from rest_framework.serializers import BaseSerializer

from config.api.representation.parsers import JSONParser, MergePatchParser
from config.api.representation.renderers import to_json
from config.api.representation.serializers import Boolean, Choice, Email, Integer, Moment, Money, Text, TextList
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import DomainError

VERBS = {"POST": "Create", "PUT": "Replace", "PATCH": "Change", "DELETE": "Delete", "OPTIONS": "Describe"}
_OF_A_ROW = frozenset({"PUT", "PATCH", "DELETE"})


@dataclass(slots=True)
class Control:
    """One field of a form.

    Attributes:
        kind: what becomes of its text: `string` is quoted, `raw` is JSON already, `list` has a box for each choice.
        widget: `input`, `textarea`, `select` or `boxes`.
        value: the text it begins with; of a list, the chosen ones.
        present: the same as the JSON it was read as, None where there is none.
        attributes: of the element, its bounds above all.
    """

    name: str
    kind: str = "string"
    widget: str = "input"
    required: bool = False
    value: Any = ""
    present: str | None = None
    hint: str = ""
    choices: Sequence[str] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Form:
    """How a method is sent.

    Attributes:
        takes_key: whether it takes an Idempotency-Key, and `needs_key` whether there must be one.
    """

    method: str
    verb: str
    controls: Sequence[Control] = ()
    takes_body: bool = False
    takes_key: bool = False
    needs_key: bool = False

    @property
    def conditional(self) -> bool:
        return self.method in _OF_A_ROW

    @property
    def content_type(self) -> str:
        return MergePatchParser.media_type if self.method == "PATCH" else JSONParser.media_type


def of_view(view: Any, data: Mapping[str, Any] | None) -> Iterator[Form]:
    """The forms of an address, those alone that the caller may send.

    Args:
        view: that answered.
        data: the whole representation of the row that it answered with, if it was that.
    """
    request, row = view.request, getattr(view, "row", None)
    if not hasattr(request, "version"):
        # None could be told: it is unknown, or two contradict each other.
        return
    try:
        # Whose request it is, where nobody asked before a 405: asked as a POST, a session would need its token.
        _ = request.auth
    except (DomainError, APIException):
        return
    for method in VERBS:
        about_row = method in _OF_A_ROW
        if method not in view.allowed_methods or (about_row and (row is None or data is None)):
            continue
        with override_method(view, request, method) as asked:
            if _may(view, asked, row if about_row else None):
                yield _form(view, method, row if about_row else None, data)


def _may(view: Any, asked: Any, row: Any) -> bool:
    try:
        view.check_permissions(asked)
        if row is not None:
            view.check_object_permissions(asked, row)
        elif asked.method == "POST" and getattr(view, "parent_id", None):
            view.check_parent()
    except (DomainError, APIException):
        return False
    return True


def _form(view: Any, method: str, row: Any, data: Mapping[str, Any] | None) -> Form:
    serializer = _serializer(view, row) if method in {"POST", "PUT", "PATCH"} else None
    form = Form(method, VERBS[method])
    if serializer is not None:
        form.takes_body = True
        form.controls = list(_controls(serializer, data if row is not None else None))
    policy = getattr(view, "idempotency", KeyPolicy.IGNORED)
    if method == "POST":
        form.takes_key = policy in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED}
        form.needs_key = policy is KeyPolicy.REQUIRED
        # A resource is created; a login is sent.
        form.verb = form.verb if hasattr(view, "links") else "Send"
    return form


def _serializer(view: Any, row: Any) -> BaseSerializer[Any]:
    if hasattr(view, "get_serializer"):
        made: BaseSerializer[Any] = view.get_serializer(row)
        return made
    context = {"version": view.request.version, "principal": view.request.auth}
    return view.serializer_class(context=context)


def _controls(serializer: Any, data: Mapping[str, Any] | None) -> Iterator[Control]:
    closed = serializer.closed_fields() if hasattr(serializer, "closed_fields") else ()
    for name, declared in serializer.fields.items():
        if declared.read_only or name in closed:
            continue
        control = Control(name, required=declared.required)
        _shape(control, declared)
        control.hint = " ".join(filter(None, (str(declared.help_text or ""), _bounds(control))))
        if data is not None and name in data:
            control.value, control.present = _text(data[name]), to_json(data[name]).decode()
        yield control


def _shape(control: Control, declared: Any) -> None:
    """Gives a control its form and its bounds, by the kind of its field."""
    attributes = control.attributes
    match declared:
        case TextList():
            control.kind, control.widget, control.choices = "list", "boxes", declared.choices
        case Choice():
            control.widget, control.choices = "select", list(declared.choices)
        case Boolean():
            control.kind, control.widget, control.choices = "raw", "select", ("true", "false")
        case Money() if declared.as_text:
            attributes |= {"type": "text", "inputmode": "decimal", "data-from": declared.min_value}
            attributes |= {"data-to": declared.max_value}
        case Integer() | Money():
            step = 1 if isinstance(declared, Integer) else Decimal("0.01")
            attributes |= {"type": "number", "min": declared.min_value, "max": declared.max_value, "step": step}
            control.kind = "raw"
        case Moment():
            attributes |= {"type": "text", "placeholder": "2030-01-31T12:00:00Z"}
        case Text(lines=True):
            control.widget = "textarea"
            attributes |= {"rows": 5}
        case _:
            # Not `email`, which rewrites what is typed: blanks at its ends, the letters of a domain.
            mode = "email" if isinstance(declared, Email) else None
            attributes |= {"type": "password" if control.name.endswith("password") else "text", "inputmode": mode}
    if isinstance(declared, Text):
        attributes["maxlength"] = declared.max_length
    control.attributes = {name: value for name, value in attributes.items() if value is not None}


def _bounds(control: Control) -> str:
    """The bounds of a control in words."""
    given = control.attributes
    least, most = given.get("min", given.get("data-from")), given.get("max", given.get("data-to"))
    if least is not None and most is not None:
        return f"From {least} to {most}."
    if "maxlength" in given:
        return f"At most {given['maxlength']} characters."
    if control.kind == "raw" and control.widget == "input":
        return "A whole number."
    return "An RFC 3339 time." if "placeholder" in given else ""


def _text(value: Any) -> Any:
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
