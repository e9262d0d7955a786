"""The errors of the contract, as plain Python: what raises one needs no web framework."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple


class ErrorCode(StrEnum):
    """Every code an error body can carry; `status` is the HTTP status it goes with."""

    status: int

    def __new__(cls, status: int, code: str) -> "ErrorCode":
        member = str.__new__(cls, code)
        member._value_ = code
        member.status = status
        return member

    @property
    def help(self) -> str:
        """The address at which the guide explains the code and what to do."""
        return f"/docs/errors#{self}"

    VALIDATION_ERROR = 400, "VALIDATION_ERROR"
    MALFORMED_JSON = 400, "MALFORMED_JSON"
    INVALID_CURSOR = 400, "INVALID_CURSOR"
    IDEMPOTENCY_KEY_REQUIRED = 400, "IDEMPOTENCY_KEY_REQUIRED"
    IDEMPOTENCY_KEY_INVALID = 400, "IDEMPOTENCY_KEY_INVALID"
    VERSION_CONFLICT = 400, "VERSION_CONFLICT"
    UNSUPPORTED_VERSION = 400, "UNSUPPORTED_VERSION"
    CREDENTIAL_CONFLICT = 400, "CREDENTIAL_CONFLICT"
    UNAUTHENTICATED = 401, "UNAUTHENTICATED"
    INVALID_TOKEN = 401, "INVALID_TOKEN"
    INVALID_CREDENTIALS = 401, "INVALID_CREDENTIALS"
    FORBIDDEN = 403, "FORBIDDEN"
    INSUFFICIENT_SCOPE = 403, "INSUFFICIENT_SCOPE"
    NOT_FOUND = 404, "NOT_FOUND"
    METHOD_NOT_ALLOWED = 405, "METHOD_NOT_ALLOWED"
    NOT_ACCEPTABLE = 406, "NOT_ACCEPTABLE"
    VERSION_RETIRED = 410, "VERSION_RETIRED"
    CURSOR_EXPIRED = 410, "CURSOR_EXPIRED"
    CONFLICT = 409, "CONFLICT"
    IDEMPOTENCY_IN_PROGRESS = 409, "IDEMPOTENCY_IN_PROGRESS"
    PRECONDITION_FAILED = 412, "PRECONDITION_FAILED"
    PAYLOAD_TOO_LARGE = 413, "PAYLOAD_TOO_LARGE"
    UNSUPPORTED_MEDIA_TYPE = 415, "UNSUPPORTED_MEDIA_TYPE"
    IDEMPOTENCY_KEY_REUSED = 422, "IDEMPOTENCY_KEY_REUSED"
    RATE_LIMITED = 429, "RATE_LIMITED"
    INTERNAL_ERROR = 500, "INTERNAL_ERROR"
    NOT_IMPLEMENTED = 501, "NOT_IMPLEMENTED"
    SERVICE_UNAVAILABLE = 503, "SERVICE_UNAVAILABLE"


# As the server sends them. Python's differ from one release to the next.
_PHRASES = {413: "Payload Too Large", 422: "Unprocessable Entity"}


def get_phrase(status: int) -> str:
    """The reason phrase of a status."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase


# The default messages. The reference shows each as the example of its code.
MESSAGES = {
    ErrorCode.VALIDATION_ERROR: "The request is invalid. See details.",
    ErrorCode.INVALID_CURSOR: (
        "The cursor does not match this list, its sort or its filters. Start again with an empty cursor."
    ),
    ErrorCode.CURSOR_EXPIRED: (
        "The events after this cursor are no longer stored. Get a new one with cursor=now, then read all resources."
    ),
    ErrorCode.IDEMPOTENCY_KEY_REQUIRED: (
        "Send the header Idempotency-Key with a value that is unique for each payment, such as a UUID."
    ),
    ErrorCode.IDEMPOTENCY_KEY_INVALID: (
        'Send the header once, with 1 to 255 visible ASCII characters, such as abc-1 or "abc-1".'
    ),
    ErrorCode.IDEMPOTENCY_IN_PROGRESS: "A request with this key is still running. Retry to get its response.",
    ErrorCode.IDEMPOTENCY_KEY_REUSED: (
        "This key was used for a different request. Use a new key, or resend the original request."
    ),
    ErrorCode.CREDENTIAL_CONFLICT: "The request has more than one credential. Send exactly one.",
    ErrorCode.UNAUTHENTICATED: "This request requires a credential.",
    ErrorCode.INVALID_TOKEN: "The token is invalid, revoked or expired.",
    ErrorCode.INVALID_CREDENTIALS: "Wrong email or password.",
    ErrorCode.FORBIDDEN: "You are not allowed to do this.",
    ErrorCode.NOT_FOUND: "The resource does not exist, or you cannot access it.",
    ErrorCode.PRECONDITION_FAILED: "A precondition of the request is not met.",
    ErrorCode.INTERNAL_ERROR: "Something went wrong on our side. Include the Request-Id when you report it.",
    ErrorCode.NOT_IMPLEMENTED: "The only supported transfer coding is chunked. Send the body unencoded.",
    ErrorCode.SERVICE_UNAVAILABLE: "The database is unavailable or busy. Try again.",
}


class Detail(NamedTuple):
    """One problem: the field it is about (dotted when nested) and the way out."""

    field: str
    message: str


class DomainError(Exception):
    """An answer other than success, raised from anywhere and rendered by the one exception handler.

    Args:
        code: the error code.
        message: one sentence for the reader; that of the code if None.
        details: the single problems, if they can be distinguished.
        headers: additional headers of the response, such as `WWW-Authenticate`.
        status: instead of the code's own status, where the contract gives one code several.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        details: Iterable[Detail] = (),
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        self.message = MESSAGES[code] if message is None else message
        super().__init__(self.message)
        self.code = code
        self.details = list(details)
        self.headers = dict(headers or {})
        self.status = status or code.status

    def __reduce__(self) -> tuple[object, ...]:
        """Python's would pass the message alone. A request that is refused may go to another process."""
        return type(self), (self.code, self.message), vars(self)


def invalid(*details: Detail) -> DomainError:
    """A VALIDATION_ERROR that names every problem."""
    return DomainError(ErrorCode.VALIDATION_ERROR, details=details)


def forbidden(message: str, *fields: str) -> DomainError:
    """A FORBIDDEN that names the fields which the caller may not write."""
    return DomainError(ErrorCode.FORBIDDEN, message, [Detail(field, message) for field in fields])


def not_found() -> DomainError:
    return DomainError(ErrorCode.NOT_FOUND)


def invalid_token() -> DomainError:
    """The answer to every bearer or refresh token that is refused, whatever the reason (RFC 6750, section 3.1)."""
    challenge = 'Bearer realm="users", error="invalid_token"'
    return DomainError(ErrorCode.INVALID_TOKEN, headers={"WWW-Authenticate": challenge})
