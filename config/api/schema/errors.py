"""The errors of each operation: which statuses and codes it can answer, and what such an answer looks like."""

from collections import defaultdict
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from config.api import envelope
from config.api.accept import PROBLEM_JSON
from config.api.errors import Detail, DomainError, ErrorCode
from config.api.idempotency import KeyPolicy
from config.api.paths import is_versioned
from config.api.permissions import ResourcePermission
from config.api.schema.fields import closed, integer, text
from config.api.viewsets import ResourceViewSet

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
Codes = dict[int, list[ErrorCode]]

_DETAILS = {"type": "array", "items": {"$ref": "#/components/schemas/ErrorDetail"}, "maxItems": 1_000_000}
_CODE = {"$ref": "#/components/schemas/ErrorCode"}
_LONGEST_MESSAGE = 32_768
SCHEMAS: dict[str, Any] = {
    "ErrorCode": {"type": "string", "enum": [code.value for code in ErrorCode]},
    # A name is the client's own where it is an unknown one, and so as long as a body.
    "ErrorDetail": closed({"field": text(1_048_576, "^[^\\u0000]*$|^"), "message": text(_LONGEST_MESSAGE)}),
    "ErrorBody": closed({"code": _CODE, "message": text(_LONGEST_MESSAGE), "details": _DETAILS}),
    "Error": closed({"success": {"const": False}, "error": {"$ref": "#/components/schemas/ErrorBody"}}),
    "Problem": closed(
        {
            "type": text(2048, "^https?://[^#]+/docs/errors#[A-Z_]+$", format="uri"),
            "title": text(64),
            "status": integer(400, 599),
            "detail": text(_LONGEST_MESSAGE),
            "code": _CODE,
            "details": _DETAILS,
        },
        description="The same facts as RFC 9457 problem details.",
    ),
}

# What each code looks like: its message, and the field that it names.
_EXAMPLES: dict[ErrorCode, tuple[str, str]] = {
    ErrorCode.VALIDATION_ERROR: ("The request is not valid; see details.", "email"),
    ErrorCode.MALFORMED_JSON: ("The body is no JSON: it ends too early.", ""),
    ErrorCode.INVALID_CURSOR: ("The cursor does not belong to this list; start again with an empty one.", "cursor"),
    ErrorCode.IDEMPOTENCY_KEY_REQUIRED: ("Send the header Idempotency-Key with a new value.", "Idempotency-Key"),
    ErrorCode.IDEMPOTENCY_KEY_INVALID: ("Send one key of visible ASCII characters.", "Idempotency-Key"),
    ErrorCode.VERSION_CONFLICT: ("The request asks for the versions 1 and 2; name one.", ""),
    ErrorCode.UNSUPPORTED_VERSION: ("There is no version '9'. Supported: 1, 2.", ""),
    ErrorCode.CREDENTIAL_CONFLICT: ("The request carries more than one credential; send exactly one.", ""),
    ErrorCode.UNAUTHENTICATED: ("This needs a credential.", ""),
    ErrorCode.INVALID_TOKEN: ("The token is not valid, or not any more.", ""),
    ErrorCode.INVALID_CREDENTIALS: ("The email or the password is wrong.", ""),
    ErrorCode.FORBIDDEN: ("Only an administrator may set this.", "role"),
    ErrorCode.INSUFFICIENT_SCOPE: ("The credential lacks the scope users:write.", "scope"),
    ErrorCode.NOT_FOUND: ("There is no such resource, or you may not see it.", ""),
    ErrorCode.METHOD_NOT_ALLOWED: ("This address does not have that method; see Allow.", ""),
    ErrorCode.NOT_ACCEPTABLE: ("Available: application/json, text/html.", ""),
    ErrorCode.VERSION_RETIRED: ("Version 1 has been retired. Supported: 2; see `Link` for the successor.", ""),
    ErrorCode.CONFLICT: ("The email is taken.", "email"),
    ErrorCode.IDEMPOTENCY_IN_PROGRESS: ("A request with this key is still running; send it again.", "Idempotency-Key"),
    ErrorCode.PRECONDITION_FAILED: ("The resource is not as the request expects it.", "If-Match"),
    ErrorCode.PAYLOAD_TOO_LARGE: ("The body is too long.", ""),
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: ("Content-Type must be application/json.", ""),
    ErrorCode.IDEMPOTENCY_KEY_REUSED: ("This key was used for another request; send a new one.", "Idempotency-Key"),
    ErrorCode.RATE_LIMITED: ("Too many; try again in 42 seconds.", ""),
    ErrorCode.INTERNAL_ERROR: ("Something failed on our side; the Request-Id finds it in the log.", ""),
    ErrorCode.SERVICE_UNAVAILABLE: ("The database is away or busy; try again.", ""),
}


def examples() -> dict[str, Any]:
    """Each code as both bodies, as components."""
    found: dict[str, Any] = {}
    for code, (message, field) in _EXAMPLES.items():
        problem = DomainError(code, message, [Detail(field, message)] if field else [])
        found[code.value] = {"summary": message, "value": envelope.error(problem)}
        found[f"{code.value}.problem"] = {"summary": message, "value": envelope.problem_details(problem)}
    return found


def is_open(view: Any, method: str) -> bool:
    """Whether an operation may be called without a credential."""
    asked: Any = type("Request", (), {"method": method})()
    permissions = [permission() for permission in view.permission_classes]
    return all(one.allows_anonymous(asked) for one in permissions if isinstance(one, ResourcePermission))


def codes_of(view: Any, path: str, method: str) -> Codes:
    """The codes of an operation, by status: those that follow from what its view declares, and the view's own."""
    codes: Codes = defaultdict(list)

    def add(*given: ErrorCode, status: int | None = None) -> None:
        for code in given:
            codes[status or code.status].append(code)

    add(ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_ACCEPTABLE, ErrorCode.INTERNAL_ERROR, ErrorCode.SERVICE_UNAVAILABLE)
    if is_versioned(path):
        add(ErrorCode.RATE_LIMITED)
    if is_versioned(path) or view.names_version:
        add(ErrorCode.VERSION_CONFLICT, ErrorCode.UNSUPPORTED_VERSION)
        add(ErrorCode.UNSUPPORTED_VERSION, status=406)
    if is_versioned(path) and view.described_version.sunset:
        add(ErrorCode.VERSION_RETIRED)
    if method in {"GET", "PUT", "PATCH", "DELETE"}:
        add(ErrorCode.PRECONDITION_FAILED)
    if method in WITH_BODY:
        add(ErrorCode.MALFORMED_JSON, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE)
    if view.authentication_classes:
        add(*_of_credentials(view, method))
    if isinstance(view, ResourceViewSet):
        add(*_of_resource(view, path, method))
    add(*view.own_errors.get(method, ()))
    return codes


def _of_credentials(view: Any, method: str) -> Sequence[ErrorCode]:
    found = [ErrorCode.CREDENTIAL_CONFLICT, ErrorCode.INVALID_TOKEN, ErrorCode.INVALID_CREDENTIALS]
    found += [] if is_open(view, method) else [ErrorCode.UNAUTHENTICATED]
    found += [ErrorCode.INSUFFICIENT_SCOPE] if view.required_scope(method) else []
    # By role, and of a browser's session without its CSRF token.
    return found + ([] if method == "GET" else [ErrorCode.FORBIDDEN])


def _of_resource(view: ResourceViewSet, path: str, method: str) -> Sequence[ErrorCode]:
    found = [ErrorCode.INVALID_CURSOR] if view.action == "list" else []
    found += [ErrorCode.NOT_FOUND] if "{" in path else []
    if method != "POST" or view.idempotency is KeyPolicy.IGNORED:
        return found
    found.append(ErrorCode.IDEMPOTENCY_KEY_INVALID)
    if view.idempotency is KeyPolicy.REFUSED:
        return found
    if view.idempotency is KeyPolicy.REQUIRED:
        found.append(ErrorCode.IDEMPOTENCY_KEY_REQUIRED)
    return [*found, ErrorCode.IDEMPOTENCY_IN_PROGRESS, ErrorCode.IDEMPOTENCY_KEY_REUSED]


def response(status: int, codes: Sequence[ErrorCode], headers: dict[str, Any]) -> dict[str, Any]:
    """The answer of a status, with an example for each code that it may carry."""

    def media(schema: str, suffix: str) -> dict[str, Any]:
        shown = {code.value: {"$ref": f"#/components/examples/{code.value}{suffix}"} for code in codes}
        return {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": shown}

    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{code.value}`' for code in codes)}.",
        "headers": headers,
        "content": {"application/json": media("Error", ""), PROBLEM_JSON: media("Problem", ".problem")},
    }
