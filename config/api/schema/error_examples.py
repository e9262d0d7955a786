"""An example of each error code, in the words that the service answers with."""

from collections.abc import Iterator

from django.conf import settings

from config.api.limits.counters import rate_limited
from config.api.representation import envelope
from config.api.versions import versioning
from config.api.writing.idempotency import HEADER
from config.http.errors import Detail, DomainError, ErrorCode, forbidden, invalid, invalid_token, not_found
from config.http.etags import HAS_CHANGED
from config.http.json import JSONObject, malformed
from config.http.request_limits import MAX_SHORT_BODY, body_too_long, unknown_transfer_coding
from config.models import MAX_KEY_LENGTH


def build_error_examples() -> JSONObject:
    """The example components: each error in the envelope, and as problem details under `<code>.problem`."""
    examples: JSONObject = {}
    for error in _build_errors():
        code = error.code.value
        examples[code] = {"summary": error.message, "value": envelope.error(error)}
        examples[f"{code}.problem"] = {"summary": error.message, "value": envelope.problem_details(error)}
    return examples


def _build_errors() -> Iterator[DomainError]:
    oldest, *others = settings.API_VERSIONS
    newest, supported = others[-1], ", ".join(map(str, others))
    yield from (invalid(Detail("email", "Must be an email address.")), malformed("it is empty"), invalid_token())
    yield from (forbidden("Only an administrator may set this.", "role"), not_found(), body_too_long(MAX_SHORT_BODY))
    yield from (rate_limited(42), unknown_transfer_coding())
    yield versioning.unsupported(f"{newest.number + 1}", ErrorCode.UNSUPPORTED_VERSION.status)
    message, detail = "The resource is not as the request expects it.", Detail("If-Match", HAS_CHANGED)
    yield DomainError(ErrorCode.PRECONDITION_FAILED, message, [detail])
    for code, message, field in (
        (
            ErrorCode.INVALID_CURSOR,
            "Not a cursor of this list in this order; start again with an empty one.",
            "cursor",
        ),
        (
            ErrorCode.IDEMPOTENCY_KEY_REQUIRED,
            f"Send the header {HEADER} with a value of your own that is new for each payment, such as a UUID.",
            HEADER,
        ),
        (
            ErrorCode.IDEMPOTENCY_KEY_INVALID,
            f'Send the header once, with 1 to {MAX_KEY_LENGTH} visible ASCII characters: abc-1 or "abc-1".',
            HEADER,
        ),
        (
            ErrorCode.IDEMPOTENCY_IN_PROGRESS,
            "A request with this key is still running; send it again to get its answer.",
            HEADER,
        ),
        (
            ErrorCode.IDEMPOTENCY_KEY_REUSED,
            "This key was used for another request; send a new key with this body, or the old body with this key.",
            HEADER,
        ),
        (ErrorCode.VERSION_CONFLICT, f"The request asks for the versions {oldest} and {newest}; name one.", ""),
        (
            ErrorCode.VERSION_RETIRED,
            f"Version {oldest} has been retired. Supported: {supported}; see `Link` for the successor.",
            "",
        ),
        (ErrorCode.CREDENTIAL_CONFLICT, "The request carries more than one credential; send exactly one.", ""),
        (ErrorCode.UNAUTHENTICATED, "This needs a credential.", ""),
        (ErrorCode.INVALID_CREDENTIALS, "The email or the password is wrong.", ""),
        (ErrorCode.INSUFFICIENT_SCOPE, "The credential lacks the scope users:write.", "scope"),
        (ErrorCode.METHOD_NOT_ALLOWED, 'Method "DELETE" not allowed.', ""),
        (ErrorCode.NOT_ACCEPTABLE, "Available: application/json, text/html.", ""),
        (ErrorCode.CONFLICT, "Another user has this email.", "email"),
        (ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.", ""),
        (ErrorCode.INTERNAL_ERROR, "Something failed on our side; the Request-Id finds it in the log.", ""),
        (ErrorCode.SERVICE_UNAVAILABLE, "The database is away or busy; try again.", ""),
    ):
        yield DomainError(code, message, [Detail(field, message)] if field else [])
