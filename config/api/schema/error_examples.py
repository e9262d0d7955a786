"""An example of each error code, in the words that the service answers with."""

from collections.abc import Iterator

from django.conf import settings

from config.api.limits.counters import rate_limited
from config.api.listing.cursors import invalid_cursor
from config.api.permissions import insufficient_scope
from config.api.representation import envelope
from config.api.versions import versioning
from config.api.writing.idempotency import refuse_key
from config.http.errors import MESSAGES, Detail, DomainError, ErrorCode, forbidden, invalid
from config.http.etags import HAS_CHANGED, failed_precondition
from config.http.json import JSONObject, malformed
from config.http.request_limits import MAX_SHORT_BODY, body_too_long


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
    yield versioning.unsupported(f"{newest.number + 1}", ErrorCode.UNSUPPORTED_VERSION.status)
    yield from (versioning.conflicting(oldest.number, newest.number), versioning.retired(oldest))
    yield DomainError(ErrorCode.CURSOR_EXPIRED, details=[Detail("cursor", MESSAGES[ErrorCode.CURSOR_EXPIRED])])
    yield DomainError(ErrorCode.CONFLICT, taken := "Another user has this email address.", [Detail("email", taken)])
    yield DomainError(ErrorCode.METHOD_NOT_ALLOWED, 'Method "DELETE" not allowed.')
    yield DomainError(ErrorCode.NOT_ACCEPTABLE, "Available: application/json, text/html.")
    yield DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json.")
