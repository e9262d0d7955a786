"""An example of each error code, in the words that the service answers with."""

from collections.abc import Iterator

from django.conf import settings

from config.api.limits.counters import rate_limited
from config.api.representation import envelope
from config.api.versions import versioning
from config.api.writing.idempotency import HEADER
from config.http.errors import Detail, DomainError, ErrorCode, forbidden, invalid, invalid_token, not_found
from config.http.json import JSONObject, malformed
from config.http.request_limits import MAX_SHORT_BODY, body_too_long, unknown_transfer_coding
from config.models import MAX_KEY_LENGTH


def build_error_examples() -> JSONObject:
    """The example components: each error in the envelope, and as problem details under `<code>.problem`."""
    examples: JSONObject = {}
    for error in _iterate_errors():
        code = error.code.value
        examples[code] = {"summary": error.message, "value": envelope.error(error)}
        examples[f"{code}.problem"] = {"summary": error.message, "value": envelope.problem_details(error)}
    return examples


def _iterate_errors() -> Iterator[DomainError]:
    yield from _iterate_input_errors()
    yield from _iterate_idempotency_errors()
    yield from _iterate_version_errors()
    yield from _iterate_credential_errors()
    yield from _iterate_resource_errors()
    yield from _iterate_service_errors()


def _build_error(code: ErrorCode, message: str, field: str = "", detail: str = "") -> DomainError:
    """An error; where it concerns a field, the detail says `detail` or else repeats the message."""
    return DomainError(code, message, [Detail(field, detail or message)] if field else [])


def _iterate_input_errors() -> Iterator[DomainError]:
    yield invalid(Detail("email", "Must be an email address."))
    yield malformed("it is empty")
    message = "Not a cursor of this list in this order; start again with an empty one."
    yield _build_error(ErrorCode.INVALID_CURSOR, message, "cursor")


def _iterate_idempotency_errors() -> Iterator[DomainError]:
    message = f"Send the header {HEADER} with a value of your own that is new for each payment, such as a UUID."
    yield _build_error(ErrorCode.IDEMPOTENCY_KEY_REQUIRED, message, HEADER)
    message = f'Send the header once, with 1 to {MAX_KEY_LENGTH} visible ASCII characters: abc-1 or "abc-1".'
    yield _build_error(ErrorCode.IDEMPOTENCY_KEY_INVALID, message, HEADER)
    message = "A request with this key is still running; send it again to get its answer."
    yield _build_error(ErrorCode.IDEMPOTENCY_IN_PROGRESS, message, HEADER)
    message = "This key was used for another request; send a new key with this body, or the old body with this key."
    yield _build_error(ErrorCode.IDEMPOTENCY_KEY_REUSED, message, HEADER)


def _iterate_version_errors() -> Iterator[DomainError]:
    oldest, newest = settings.API_VERSIONS[0], settings.API_VERSIONS[-1]
    message = f"The request asks for the versions {oldest} and {newest}; name one."
    yield _build_error(ErrorCode.VERSION_CONFLICT, message)
    yield versioning.unsupported(f"{newest.number + 1}", ErrorCode.UNSUPPORTED_VERSION.status)


def _iterate_credential_errors() -> Iterator[DomainError]:
    message = "The request carries more than one credential; send exactly one."
    yield _build_error(ErrorCode.CREDENTIAL_CONFLICT, message)
    yield _build_error(ErrorCode.UNAUTHENTICATED, "This needs a credential.")
    yield invalid_token()
    yield _build_error(ErrorCode.INVALID_CREDENTIALS, "The email or the password is wrong.")
    yield forbidden("Only an administrator may set this.", "role")
    yield _build_error(ErrorCode.INSUFFICIENT_SCOPE, "The credential lacks the scope users:write.", "scope")


def _iterate_resource_errors() -> Iterator[DomainError]:
    oldest, *others = settings.API_VERSIONS
    yield not_found()
    yield _build_error(ErrorCode.METHOD_NOT_ALLOWED, 'Method "DELETE" not allowed.')
    yield _build_error(ErrorCode.NOT_ACCEPTABLE, "Available: application/json, text/html.")
    supported = ", ".join(map(str, others))
    message = f"Version {oldest} has been retired. Supported: {supported}; see `Link` for the successor."
    yield _build_error(ErrorCode.VERSION_RETIRED, message)
    yield _build_error(ErrorCode.CONFLICT, "Another user has this email.", "email")
    detail = "It has changed since. Read it again, and decide anew."
    message = "The resource is not as the request expects it."
    yield _build_error(ErrorCode.PRECONDITION_FAILED, message, "If-Match", detail)


def _iterate_service_errors() -> Iterator[DomainError]:
    yield body_too_long(MAX_SHORT_BODY)
    yield _build_error(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.")
    yield rate_limited(42)
    yield unknown_transfer_coding()
    yield _build_error(ErrorCode.INTERNAL_ERROR, "Something failed on our side; the Request-Id finds it in the log.")
    yield _build_error(ErrorCode.SERVICE_UNAVAILABLE, "The database is away or busy; try again.")
