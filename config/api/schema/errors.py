"""The errors of each operation: which statuses and codes it can answer, and what such an answer looks like."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings

from config.api.limits.counters import rate_limited
from config.api.permissions import ResourcePermission
from config.api.representation import envelope
from config.api.representation.parsers import malformed
from config.api.schema.fields import closed, integer, text
from config.api.versions import versioning
from config.api.versions.paths import is_versioned
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import HEADER, KeyPolicy
from config.http.errors import Detail, DomainError, ErrorCode, forbidden, invalid, invalid_token, not_found
from config.http.media_types import PROBLEM_JSON
from config.models.resource import LONGEST_KEY

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


def _example(code: ErrorCode, message: str, field: str = "", told: str = "") -> DomainError:
    """An error that is about a field, if it names one: in the words `told`, or else those of the message."""
    return DomainError(code, message, [Detail(field, told or message)] if field else [])


def _examples() -> Iterator[DomainError]:
    """Each code once, in the words of the service."""
    oldest, *others = settings.API_VERSIONS
    newest = settings.API_VERSIONS[-1]
    yield invalid(Detail("email", "Must be an email address."))
    yield malformed("it is empty")
    message = "Not a cursor of this list in this order; start again with an empty one."
    yield _example(ErrorCode.INVALID_CURSOR, message, "cursor")
    yield from _of_keys()
    message = f"The request asks for the versions {oldest} and {newest}; name one."
    yield _example(ErrorCode.VERSION_CONFLICT, message)
    yield versioning.unsupported(f"{newest.number + 1}", ErrorCode.UNSUPPORTED_VERSION.status)
    message = "The request carries more than one credential; send exactly one."
    yield _example(ErrorCode.CREDENTIAL_CONFLICT, message)
    yield _example(ErrorCode.UNAUTHENTICATED, "This needs a credential.")
    yield invalid_token()
    yield _example(ErrorCode.INVALID_CREDENTIALS, "The email or the password is wrong.")
    yield forbidden("Only an administrator may set this.", "role")
    yield _example(ErrorCode.INSUFFICIENT_SCOPE, "The credential lacks the scope users:write.", "scope")
    yield not_found()
    yield _example(ErrorCode.METHOD_NOT_ALLOWED, 'Method "DELETE" not allowed.')
    yield _example(ErrorCode.NOT_ACCEPTABLE, "Available: application/json, text/html.")
    supported = ", ".join(map(str, others))
    message = f"Version {oldest} has been retired. Supported: {supported}; see `Link` for the successor."
    yield _example(ErrorCode.VERSION_RETIRED, message)
    yield _example(ErrorCode.CONFLICT, "Another user has this email.", "email")
    told = "It has changed since. Read it again, and decide anew."
    message = "The resource is not as the request expects it."
    yield _example(ErrorCode.PRECONDITION_FAILED, message, "If-Match", told)
    message = f"The body is longer than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
    yield _example(ErrorCode.PAYLOAD_TOO_LARGE, message)
    yield _example(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.")
    yield rate_limited(42)
    yield _example(ErrorCode.INTERNAL_ERROR, "Something failed on our side; the Request-Id finds it in the log.")
    yield _example(ErrorCode.SERVICE_UNAVAILABLE, "The database is away or busy; try again.")


def _of_keys() -> Iterator[DomainError]:
    message = f"Send the header {HEADER} with a value of your own that is new for each payment, such as a UUID."
    yield _example(ErrorCode.IDEMPOTENCY_KEY_REQUIRED, message, HEADER)
    message = f'Send the header once, with 1 to {LONGEST_KEY} visible ASCII characters: abc-1 or "abc-1".'
    yield _example(ErrorCode.IDEMPOTENCY_KEY_INVALID, message, HEADER)
    message = "A request with this key is still running; send it again to get its answer."
    yield _example(ErrorCode.IDEMPOTENCY_IN_PROGRESS, message, HEADER)
    message = "This key was used for another request; send a new key with this body, or the old body with this key."
    yield _example(ErrorCode.IDEMPOTENCY_KEY_REUSED, message, HEADER)


def examples() -> dict[str, Any]:
    """Each code as both bodies, as components."""
    found: dict[str, Any] = {}
    for problem in _examples():
        found[problem.code.value] = {"summary": problem.message, "value": envelope.error(problem)}
        found[f"{problem.code.value}.problem"] = {
            "summary": problem.message,
            "value": envelope.problem_details(problem),
        }
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
