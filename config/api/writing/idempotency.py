"""A retry can never have a second effect: the key, the response and the effect commit in one transaction.

Contract section 7. A view declares what it does with the header in one line; `ResourceViewSet.create` does the rest.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from enum import Enum
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError
from django.db.models import Model
from django.utils.crypto import salted_hmac
from prometheus_client import Counter
from psycopg.errors import UniqueViolation
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.versions.versioning import strip_prefix
from config.http.errors import MESSAGES, Detail, DomainError, ErrorCode
from config.http.json import RefusedLine, UnusableNumber, to_json
from config.models import MAX_KEY_LENGTH, IdempotencyRecord
from config.postgresql.transactions import ConcurrentWrite, get_lock_number, try_advisory_lock

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
_VARIABLE = "HTTP_IDEMPOTENCY_KEY"
OUTCOMES = ("replayed", "reused", "in_progress")
REPEATED = Counter(
    "idempotency_keys_repeated", "Keys that were not new, by what their request was answered.", ["outcome"]
)

# Visible ASCII; a bare key without the characters that lists, parameters and strings are made of (RFC 9651).
BARE_KEY = re.compile(rf"[!#-+\--:<-~]{{1,{MAX_KEY_LENGTH}}}")
QUOTED_KEY = re.compile(rf'"((?:[!#-\[\]-~]|\\["\\]){{1,{MAX_KEY_LENGTH}}})"')


class KeyPolicy(Enum):
    """What a POST does with an `Idempotency-Key`."""

    REQUIRED = "required"
    HONOURED = "honoured"
    # The response holds a secret, which must not be stored.
    REFUSED = "refused"
    IGNORED = "ignored"


class StoredAnswer(NamedTuple):
    """The parts of a record that a replay needs."""

    fingerprint: bytes
    status: int
    location: str
    body: str


# The stored response, as a view makes a response of it (`build_response`): body, status and headers.
Replay = tuple[orjson.Fragment, int, Mapping[str, str]]


class IdempotencyKey(NamedTuple):
    """A key and the request that brings it, in the order of a record's columns.

    Attributes:
        earlier_fingerprints: of the same request under earlier secrets, which a record may have.
    """

    user_id: int
    operation: str
    key: str
    fingerprint: bytes
    earlier_fingerprints: Sequence[bytes] = ()

    @property
    def lock_number(self) -> int:
        """The advisory lock of the key."""
        return get_lock_number(f"{self.user_id} {self.operation} {self.key}")

    def fetch_replay(self) -> Replay | None:
        """The stored response where the key was used for this request before; None where it is new.

        A new key is locked until the transaction ends. No request waits for another's key.

        Raises:
            DomainError: IDEMPOTENCY_KEY_REUSED or IDEMPOTENCY_IN_PROGRESS.
        """
        # The lock before the look-up: its previous holder released it after its record became visible, so the snapshot
        # of the next statement has that record. One statement for both would use a snapshot from before the lock.
        is_alone = try_advisory_lock(self.lock_number)
        records = IdempotencyRecord._base_manager.filter(user_id=self.user_id, operation=self.operation, key=self.key)
        if record := records.first():
            if not record.shows_removed_user():
                return self.build_replay(record)
            # The key is new again, as it will be when the record is erased.
            record.delete()
        if not is_alone:
            REPEATED.labels("in_progress").inc()
            raise refuse_key(ErrorCode.IDEMPOTENCY_IN_PROGRESS)
        return None

    def build_replay(self, record: IdempotencyRecord | StoredAnswer) -> Replay:
        """The stored response.

        Args:
            record: of the key.

        Raises:
            DomainError: IDEMPOTENCY_KEY_REUSED when the record is of another request.
        """
        if bytes(record.fingerprint) not in {self.fingerprint, *self.earlier_fingerprints}:
            REPEATED.labels("reused").inc()
            raise refuse_key(ErrorCode.IDEMPOTENCY_KEY_REUSED)
        REPEATED.labels("replayed").inc()
        # Many rows have no single address.
        location = {"Location": record.location} if record.location else {}
        return orjson.Fragment(record.body), record.status, {**location, REPLAYED: "true"}

    def store(self, response: Response, *rows: Any) -> None:
        """Stores a response to the request.

        Args:
            response: a 2xx, of a single row with a Location.
            rows: the new rows that it represents.

        Raises:
            ConcurrentWrite: the key has a record that was not there before. Run again, the request finds it.
        """
        record = IdempotencyRecord(**dict(zip(RECORD_COLUMNS, self.get_record(response, rows[0]), strict=True)))
        if "Location" not in response:
            # The users whom the rows show.
            owners = {row.pk if isinstance(row, get_user_model()) else row.user_id for row in rows}
            record.owner_id, record.owner_ids = None, sorted(owners - {self.user_id})
        try:
            record.save(force_insert=True)
        except IntegrityError as error:
            cause = error.__cause__
            if not isinstance(cause, UniqueViolation) or cause.diag.table_name != IdempotencyRecord._meta.db_table:
                raise
            # Somebody ran without the lock, a release that locks in another way perhaps. The effect is rolled back.
            raise ConcurrentWrite from error

    def get_record(self, response: Response, row: Model) -> list[Any]:
        """The values of RECORD_COLUMNS. The response is stored as JSON, whatever page a browser was shown of it."""
        owner_id = getattr(row, "user_id", self.user_id)
        other_owner_id = None if owner_id == self.user_id else owner_id
        location = response.headers.get("Location", "")
        return [*self[:4], other_owner_id, response.status_code, location, to_json(response.data).decode()]


RECORD_COLUMNS = (*IdempotencyKey._fields[:4], "owner_id", "status", "location", "body")


def parse_key(request: Request, policy: KeyPolicy) -> IdempotencyKey | None:
    """The key of a request; None where there is none, and need not be.

    Args:
        request: authenticated, with its body read.
        policy: what the view does with a key.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REQUIRED or IDEMPOTENCY_KEY_INVALID.
    """
    key = parse_header(request, policy)
    return None if key is None else build_key(request, get_operation(request), key)


def build_key(request: Request, operation: str, key: str) -> IdempotencyKey:
    """The key of a request, which is authenticated and has its body read.

    Args:
        operation: of `get_operation`.
        key: of `parse_header`.
    """
    version, body = str(request.version), request.data
    fingerprint = build_fingerprint(version, body)
    earlier = [build_fingerprint(version, body, secret) for secret in settings.SECRET_KEY_FALLBACKS]
    return IdempotencyKey(request.auth.user.pk, operation, key, fingerprint, earlier)


def get_operation(request: Request) -> str:
    """The operation that a key is used for: the method and the path without prefix."""
    return f"{request.method} {strip_prefix(request.path)}"


def parse_header(request: Request, policy: KeyPolicy) -> str | None:
    """The value of a key; None where there is none, and need not be.

    Args:
        request: of which the headers are looked at alone.
        policy: what the view does with a key.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REQUIRED or IDEMPOTENCY_KEY_INVALID.
    """
    header = None if policy is KeyPolicy.IGNORED else request.META.get(_VARIABLE)
    if header is None:
        if policy is KeyPolicy.REQUIRED:
            raise refuse_key(ErrorCode.IDEMPOTENCY_KEY_REQUIRED)
        return None
    if policy is KeyPolicy.REFUSED:
        message = "This response contains a secret and is never stored. Omit the header."
        raise refuse_key(ErrorCode.IDEMPOTENCY_KEY_INVALID, message)
    key = _parse_value(header.strip(" \t"))
    if key is None:
        raise refuse_key(ErrorCode.IDEMPOTENCY_KEY_INVALID)
    return key


def _parse_value(value: str) -> str | None:
    """The key in a header's value; None for what is no single key.

    Servers join repeated headers by commas: a bare key has none. A string that was cut in two by them has a blank,
    as config.server.requests joins them, and no key has one.
    """
    if BARE_KEY.fullmatch(value):
        return value
    quoted = QUOTED_KEY.fullmatch(value)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else None


def refuse_key(code: ErrorCode, message: str | None = None) -> DomainError:
    """The error of a code that is about the header, in its own words if the message is None."""
    headers = {"Retry-After": "1"} if code is ErrorCode.IDEMPOTENCY_IN_PROGRESS else {}
    return DomainError(code, message, [Detail(HEADER, message or MESSAGES[code])], headers=headers)


# --- The fingerprint of a body: a keyed digest of what it means, however it is written

# Exact for every exponent that fits into a body: `int()` refuses long ones, or takes quadratic time. A body may hold
# thousands of short ones, of which it takes less.
_MAX_SHORT_EXPONENT = 17
_EXACT = Context(prec=2 * 1024 * 1024, Emax=MAX_EMAX, Emin=MIN_EMIN)
# The parser makes integers of fewer digits, and a number that is whole has to equal them.
_MAX_DIGITS = 64


def build_fingerprint(version: str, body: Any, secret: str | None = None) -> bytes:
    """A keyed digest, by SECRET_KEY or another secret: bodies hold people's data, and short ones could be guessed."""
    text = f"{version} {canonical(body)}"
    return salted_hmac("config.api.idempotency", text, secret or settings.SECRET_KEY, algorithm="sha256").digest()


def canonical(body: Any) -> str:
    """The one ASCII text of all bodies that mean the same: members sorted, numbers by value.

    Integers are JSON's. The text of any other number begins with NaN, which no body can hold.
    """
    # It has no cycles to look for.
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=_by_value, check_circular=False)


def _by_value(number: Decimal | UnusableNumber | RefusedLine) -> int | tuple[float, str]:
    """A value that represents a number, of which a body may hold thousands, or a line that is no JSON."""
    if isinstance(number, RefusedLine):
        return math.nan, number.content.decode("latin-1")
    token = number.token.upper() if isinstance(number, UnusableNumber) else str(number)
    mantissa, _, exponent = token.partition("E")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("-0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    sign = "-" if mantissa[0] == "-" else ""
    power: int | Decimal = len(digits) - len(significant) - len(fraction)
    if exponent:
        is_short = len(exponent) <= _MAX_SHORT_EXPONENT
        power = int(exponent) + power if is_short else _EXACT.add(Decimal(exponent), power)
    if 0 <= power < _MAX_DIGITS - len(significant):
        return int(f"{sign}{significant}{'0' * int(power)}")
    return math.nan, f"{sign}{significant}E{power}"
