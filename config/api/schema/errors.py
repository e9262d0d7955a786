"""The error responses of operations: which statuses and codes each can answer, their bodies, and examples of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from config.api.limits.counters import rate_limited
from config.api.listing.cursors import invalid_cursor
from config.api.permissions import insufficient_scope
from config.api.representation import envelope
from config.api.requests import METHODS_WITH_BODY
from config.api.schema.fields import build_integer, build_object, build_string
from config.api.schema.views import has_conditions, is_later, takes_lines
from config.api.versions.versioning import conflicting, is_versioned, retired, unsupported
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import KeyPolicy, refuse_key
from config.http.errors import MESSAGES, Detail, DomainError, ErrorCode, forbidden, get_phrase, invalid
from config.http.etags import HAS_CHANGED, failed_precondition
from config.http.json import JSONObject, malformed
from config.http.media_types import PROBLEM_JSON
from config.http.request_limits import MAX_SHORT_BODY, body_too_long

CodesByStatus = dict[int, list[ErrorCode]]

_DETAILS = {"type": "array", "items": {"$ref": "#/components/schemas/ErrorDetail"}, "maxItems": 1_000_000}
_CODE = {"$ref": "#/components/schemas/ErrorCode"}
_MAX_MESSAGE = 32_768
# The field of an unknown name is what the client sent, and so as long as a body.
_FIELD = build_string(1_048_576, "^[^\\u0000]*$|^")
SCHEMAS: JSONObject = {
    "ErrorCode": {"type": "string", "enum": [code.value for code in ErrorCode]},
    "ErrorDetail": build_object({"field": _FIELD, "message": build_string(_MAX_MESSAGE)}),
    "ErrorBody": build_object({"code": _CODE, "message": build_string(_MAX_MESSAGE), "details": _DETAILS}),
    "Error": build_object({"success": {"const": False}, "error": {"$ref": "#/components/schemas/ErrorBody"}}),
    "Problem": build_object(
        {
            "type": build_string(2048, "^https?://[^#]+/docs/errors#[A-Z_]+$", format="uri"),
            "title": build_string(64),
            "status": build_integer(400, 599),
            "detail": build_string(_MAX_MESSAGE),
            "code": _CODE,
            "details": _DETAILS,
        },
        description="The error as problem details (RFC 9457).",
    ),
}


def allows_anonymous(view: Any, method: str) -> bool:
    """Whether an operation may be called without a credential.

    Args:
        view: the view of the operation.
        method: its HTTP method.

    Returns:
        Whether all permissions of the view say so.
    """
    request = HttpRequest()
    request.method = method
    return all(permission().allows_anonymous(Request(request)) for permission in view.permission_classes)


def get_error_codes(view: Any, path: str, method: str) -> CodesByStatus:
    """The error codes of an operation.

    Args:
        view: the view of the operation.
        path: its path, with variables.
        method: its HTTP method.

    Returns:
        The codes by status: those that follow from what the view declares, and then the view's own.
    """
    codes: CodesByStatus = defaultdict(list)
    for code in dict.fromkeys(_iterate_codes(view, path, method)):
        codes[code.status].append(code)
    if _has_version(view, path):
        # The status where the Accept header names the version.
        codes[406].append(ErrorCode.UNSUPPORTED_VERSION)
    return codes


def _has_version(view: Any, path: str) -> bool:
    return is_versioned(path) or view.names_version


def _iterate_codes(view: Any, path: str, method: str) -> Iterator[ErrorCode]:
    yield from (ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_ACCEPTABLE)
    yield from (ErrorCode.INTERNAL_ERROR, ErrorCode.SERVICE_UNAVAILABLE)
    if is_versioned(path):
        yield ErrorCode.RATE_LIMITED
    if _has_version(view, path):
        yield from (ErrorCode.VERSION_CONFLICT, ErrorCode.UNSUPPORTED_VERSION)
    if is_versioned(path) and view.described_version.sunset:
        yield ErrorCode.VERSION_RETIRED
    if has_conditions(view, method):
        yield ErrorCode.PRECONDITION_FAILED
    if method in METHODS_WITH_BODY:
        yield from (ErrorCode.MALFORMED_JSON, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE)
        yield ErrorCode.NOT_IMPLEMENTED
    if view.authentication_classes:
        yield from _iterate_credential_codes(view, method)
    if isinstance(view, ResourceViewSet):
        yield from _iterate_resource_codes(view, path, method)
    yield from view.own_errors.get(method, ())


def _iterate_credential_codes(view: Any, method: str) -> Iterator[ErrorCode]:
    yield from (ErrorCode.CREDENTIAL_CONFLICT, ErrorCode.INVALID_TOKEN, ErrorCode.INVALID_CREDENTIALS)
    if not allows_anonymous(view, method) or takes_lines(view, method):
        yield ErrorCode.UNAUTHENTICATED
    if view.required_scope(method):
        yield ErrorCode.INSUFFICIENT_SCOPE
    if method != "GET" or settings.REQUIRE_VERIFIED_EMAIL:
        # The role's permissions, a session without its CSRF token, or Basic with an email that is not verified.
        yield ErrorCode.FORBIDDEN


def _iterate_resource_codes(view: ResourceViewSet, path: str, method: str) -> Iterator[ErrorCode]:
    if view.action == "list":
        yield ErrorCode.INVALID_CURSOR
        if is_later(view) and not set(view.staff_filters).isdisjoint(view.filterset_class.later):
            yield ErrorCode.FORBIDDEN
    if "{" in path:
        yield ErrorCode.NOT_FOUND
    if takes_lines(view, method) or (method == "POST" and view.idempotency is not KeyPolicy.IGNORED):
        yield ErrorCode.IDEMPOTENCY_KEY_INVALID
        if view.idempotency is KeyPolicy.REQUIRED:
            yield ErrorCode.IDEMPOTENCY_KEY_REQUIRED
        if view.idempotency is not KeyPolicy.REFUSED:
            yield from (ErrorCode.IDEMPOTENCY_IN_PROGRESS, ErrorCode.IDEMPOTENCY_KEY_REUSED)


def build_error_response(status: int, codes: Sequence[ErrorCode], headers: JSONObject) -> JSONObject:
    """The response of an error status, with an example of each code.

    Args:
        status: the status of the response.
        codes: the codes that it may carry.
        headers: its `headers`.

    Returns:
        The response.
    """
    return {
        "description": f"{get_phrase(status)}: {', '.join(f'`{code.value}`' for code in codes)}.",
        "headers": headers,
        "content": {
            "application/json": _build_media_type("Error", codes),
            PROBLEM_JSON: _build_media_type("Problem", codes, ".problem"),
        },
    }


def _build_media_type(schema: str, codes: Sequence[ErrorCode], suffix: str = "") -> JSONObject:
    examples = {code.value: {"$ref": f"#/components/examples/{code.value}{suffix}"} for code in codes}
    return {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": examples}


# --- An example of each error code, in the words that the service answers with


def build_error_examples() -> JSONObject:
    """The example components: each error in the envelope, and as problem details under `<code>.problem`."""
    found = {error.code: error for error in _build_errors()}
    examples: JSONObject = {}
    for code in ErrorCode:
        error = found.get(code) or DomainError(code)
        examples[code.value] = {"summary": error.message, "value": envelope.error(error)}
        examples[f"{code.value}.problem"] = {"summary": error.message, "value": envelope.problem_details(error)}
    return examples


def _build_errors() -> Iterator[DomainError]:
    """The errors that say more than what their code means."""
    oldest, newest = settings.API_VERSIONS[0], settings.API_VERSIONS[-1]
    yield from (invalid(Detail("email", "Must be an email address.")), malformed("it is empty"), invalid_cursor())
    yield from (forbidden("Only an administrator can set this field.", "role"), insufficient_scope("users:write"))
    yield from (refuse_key(code) for code in ErrorCode if code.startswith("IDEMPOTENCY"))
    yield from (failed_precondition("If-Match", HAS_CHANGED), body_too_long(MAX_SHORT_BODY), rate_limited(42))
    yield unsupported(f"{newest.number + 1}", ErrorCode.UNSUPPORTED_VERSION.status)
    yield from (conflicting(oldest.number, newest.number), retired(oldest))
    yield DomainError(ErrorCode.CURSOR_EXPIRED, details=[Detail("cursor", MESSAGES[ErrorCode.CURSOR_EXPIRED])])
    yield DomainError(ErrorCode.CONFLICT, taken := "Another user has this email address.", [Detail("email", taken)])
    yield DomainError(ErrorCode.METHOD_NOT_ALLOWED, 'Method "DELETE" not allowed.')
    yield DomainError(ErrorCode.NOT_ACCEPTABLE, "Available: application/json, text/html.")
    yield DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.")
