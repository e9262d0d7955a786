"""The errors of the contract, as plain Python: what raises one needs no web framework."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
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
        """Where the guide says what the code means and the way out."""
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


class Detail(NamedTuple):
    """One problem: the field it is about (dotted when nested) and the way out."""

    field: str
    message: str


class DomainError(Exception):
    """An answer other than success, raised from anywhere and rendered by the one exception handler.

    Args:
        code: the error code.
        message: one sentence for the reader.
        details: the single problems, if they can be told apart.
        headers: what the answer carries beside the body, `WWW-Authenticate` for one.
        status: instead of the code's own status, where the contract gives one code several.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        details: Iterable[Detail] = (),
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = list(details)
        self.headers = dict(headers or {})
        self.status = status or code.status

    def __reduce__(self) -> tuple[object, ...]:
        """Python's would pass the message alone. A request that is refused may go to another process."""
        return type(self), (self.code, self.message), vars(self)


def invalid(*details: Detail) -> DomainError:
    """A VALIDATION_ERROR that names every problem."""
    return DomainError(ErrorCode.VALIDATION_ERROR, "The request is not valid; see details.", details)


def forbidden(message: str, *fields: str) -> DomainError:
    """A FORBIDDEN that names the fields which the caller may not write."""
    return DomainError(ErrorCode.FORBIDDEN, message, [Detail(field, message) for field in fields])


def not_found() -> DomainError:
    return DomainError(ErrorCode.NOT_FOUND, "There is no such resource, or you may not see it.")


def invalid_token() -> DomainError:
    """The answer to every bearer or refresh token that is refused, whatever the reason (RFC 6750, section 3.1)."""
    return DomainError(
        ErrorCode.INVALID_TOKEN,
        "The token is not valid, or no longer valid.",
        headers={"WWW-Authenticate": 'Bearer realm="users", error="invalid_token"'},
    )
