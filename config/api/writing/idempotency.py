"""A retry can never have a second effect: the key, the response and the effect commit in one transaction.

Contract section 7. A view declares what it does with the header in one line; `ResourceViewSet.create` does the rest.
"""

import hashlib
import re
from enum import Enum
from typing import Any, NamedTuple

import orjson
from django.db import IntegrityError
from django.db.models import Model
from psycopg.errors import UniqueViolation
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.versions.paths import strip_prefix
from config.api.writing.fingerprint import build_fingerprint
from config.http.errors import Detail, DomainError, ErrorCode
from config.http.json import to_json
from config.models import MAX_KEY_LENGTH, IdempotencyRecord
from config.postgresql.locks import try_advisory_lock

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
_VARIABLE = "HTTP_IDEMPOTENCY_KEY"

# Visible ASCII; a bare key without the characters that lists, parameters and strings are made of (RFC 9651).
BARE_KEY = re.compile(rf"[!#-+\--:<-~]{{1,{MAX_KEY_LENGTH}}}")
QUOTED_KEY = re.compile(rf'"((?:[!#-\[\]-~]|\\["\\]){{1,{MAX_KEY_LENGTH}}})"')


class KeyPolicy(Enum):
    """What a POST does with an `Idempotency-Key`."""

    REQUIRED = "required"
    HONOURED = "honoured"
    REFUSED = "refused"
    """The response holds a secret, which must not be stored."""
    IGNORED = "ignored"


class IdempotencyKey(NamedTuple):
    """A key and the request that brings it, in the order of a record's columns."""

    user_id: int
    operation: str
    key: str
    fingerprint: bytes

    @property
    def lock_number(self) -> int:
        """The advisory lock of the key. Two keys with one number would at the worst be told to come again."""
        name = f"{self.user_id} {self.operation} {self.key}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)

    def fetch_replay(self) -> Response | None:
        """The stored response where the key was used for this request before; None where it is new.

        A new key is kept from all other requests until the transaction ends. No request waits for another's key.

        Raises:
            DomainError: IDEMPOTENCY_KEY_REUSED or IDEMPOTENCY_IN_PROGRESS.
        """
        # The lock before the look-up: whoever had the lock released it after its record could be seen, so the snapshot
        # of the next statement has that record. One statement for both would look with a snapshot from before the lock.
        is_alone = try_advisory_lock(self.lock_number)
        records = IdempotencyRecord.objects.filter(user_id=self.user_id, operation=self.operation, key=self.key)
        if record := records.first():
            return self.build_replay(record)
        if not is_alone:
            raise _in_progress()
        return None

    def build_replay(self, record: IdempotencyRecord) -> Response:
        """The stored response, which is counted.

        Raises:
            DomainError: IDEMPOTENCY_KEY_REUSED when the record is of another request.
        """
        if bytes(record.fingerprint) != self.fingerprint:
            message = (
                "This key was used for another request; send a new key with this body, or the old body with this key."
            )
            raise _refused(ErrorCode.IDEMPOTENCY_KEY_REUSED, message)
        record.count_replay()
        headers = {"Location": record.location, REPLAYED: "true"}
        return Response(orjson.Fragment(record.body), record.status, headers=headers)

    def store(self, response: Response, row: Model) -> None:
        """Stores a response to the request.

        Args:
            response: a 2xx with a Location.
            row: the new row that it represents.
        """
        try:
            IdempotencyRecord.objects.create(**dict(zip(RECORD_COLUMNS, self.get_record(response, row), strict=True)))
        except IntegrityError as error:
            cause = error.__cause__
            if not isinstance(cause, UniqueViolation) or cause.diag.table_name != IdempotencyRecord._meta.db_table:
                raise
            # Somebody ran without the lock, a release that locks in another way perhaps. The effect is rolled back.
            raise _in_progress() from None

    def get_record(self, response: Response, row: Model) -> list[Any]:
        """The values of RECORD_COLUMNS. The response is stored as JSON, whatever page a browser was shown of it."""
        owner_id = getattr(row, "user_id", self.user_id)
        other_owner_id = None if owner_id == self.user_id else owner_id
        return [*self, other_owner_id, response.status_code, response["Location"], to_json(response.data).decode()]


RECORD_COLUMNS = (*IdempotencyKey._fields, "owner_id", "status", "location", "body")


def parse_key(request: Request, policy: KeyPolicy) -> IdempotencyKey | None:
    """The key of a request; None where there is none, and need not be.

    Args:
        request: authenticated, with its body read.
        policy: what the view does with a key.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REQUIRED or IDEMPOTENCY_KEY_INVALID.
    """
    header = None if policy is KeyPolicy.IGNORED else request.META.get(_VARIABLE)
    if header is None:
        if policy is KeyPolicy.REQUIRED:
            message = f"Send the header {HEADER} with a value of your own that is new for each payment, such as a UUID."
            raise _refused(ErrorCode.IDEMPOTENCY_KEY_REQUIRED, message)
        return None
    if policy is KeyPolicy.REFUSED:
        message = "The answer holds a secret and is not stored; send the request without the header."
        raise _refused(ErrorCode.IDEMPOTENCY_KEY_INVALID, message)
    key = _parse_header(header.strip(" \t"))
    if key is None:
        message = f'Send the header once, with 1 to {MAX_KEY_LENGTH} visible ASCII characters: abc-1 or "abc-1".'
        raise _refused(ErrorCode.IDEMPOTENCY_KEY_INVALID, message)
    operation = f"{request.method} {strip_prefix(request.path)}"
    fingerprint = build_fingerprint(str(request.version), request.data)
    return IdempotencyKey(request.auth.user.pk, operation, key, fingerprint)


def _parse_header(value: str) -> str | None:
    """The key in a header's value; None for what is no single key.

    Servers join repeated headers by commas: a bare key has none. A string that was cut in two by them has a blank,
    as config.server.rsgi joins them, and no key has one.
    """
    if BARE_KEY.fullmatch(value):
        return value
    quoted = QUOTED_KEY.fullmatch(value)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else None


def _refused(code: ErrorCode, message: str) -> DomainError:
    return DomainError(code, message, [Detail(HEADER, message)])


def _in_progress() -> DomainError:
    message = "A request with this key is still running; send it again to get its answer."
    return DomainError(
        ErrorCode.IDEMPOTENCY_IN_PROGRESS, message, [Detail(HEADER, message)], headers={"Retry-After": "1"}
    )
