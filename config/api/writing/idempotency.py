"""A retry can never have a second effect: the key, the answer and the effect commit in one transaction.

Contract section 7. A view declares what it does with the header in one line; `ResourceViewSet.create` does the rest.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from enum import Enum
from typing import Any, NamedTuple

import orjson
from django.contrib.auth import get_user_model
from django.db import IntegrityError
from django.db.models import Model
from psycopg.errors import UniqueViolation
from rest_framework.request import Request

from config.api.representation.parsers import UnusableNumber
from config.api.representation.renderers import to_json
from config.api.settings import settings
from config.api.versions.paths import without_prefix
from config.fastpath.compiled_query import Parameter, Statement
from config.fastpath.postgresql import prepared_statements
from config.fastpath.postgresql.base import database
from config.fastpath.responses import Response
from config.http.digests import salted_hmac
from config.http.errors import Detail, DomainError, ErrorCode
from config.models.resource import LONGEST_KEY, IdempotencyRecord

HEADER = "Idempotency-Key"
_VARIABLE = "HTTP_IDEMPOTENCY_KEY"
REPLAYED = "Idempotent-Replayed"

Write = Callable[[], tuple[Response, Model]]


class KeyPolicy(Enum):
    """What a POST does with an `Idempotency-Key`."""

    REQUIRED = "required"
    HONOURED = "honoured"
    REFUSED = "refused"
    """The answer holds a secret, which must not be stored."""
    IGNORED = "ignored"


def _beside_the_user(look_up: str) -> str:
    """Also keeps the user from being removed, as `UserManager.hold` does, but never waits: then nothing is `held`."""
    return f"""
        SELECT seen.*, held FROM (VALUES (1)) AS always LEFT JOIN ({look_up}) AS seen ON true LEFT JOIN (
            SELECT true AS held FROM {get_user_model()._meta.db_table} WHERE id = %s AND removed_at IS NULL
            FOR KEY SHARE SKIP LOCKED
        ) AS present ON true
    """  # noqa: S608 - of constants


# Its one row has no id when the key is new.
_record = Statement(
    IdempotencyRecord.objects.order_by().filter(
        user_id=Parameter("user_id"), operation=Parameter("operation"), key=Parameter("key")
    ),
    _beside_the_user,
    [Parameter("user_id")],
)


class Key(NamedTuple):
    """A key, and what was asked with it, in the order of a record's columns."""

    user_id: int
    operation: str
    text: str
    fingerprint: bytes

    @property
    def lock(self) -> int:
        # Two with the same number would at the worst be told to come again.
        name = f"{self.user_id} {self.operation} {self.text}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)

    @property
    def seen(self) -> prepared_statements.Statement:
        """Selects a row when the key was seen."""
        return _SEEN, self[:3]

    def recorded(self, response: Response, row: Model) -> prepared_statements.Statement:
        """The beginning of a statement that adds the row: its `condition` is that the key is recorded with the answer.

        There is none where the key was seen meanwhile, where it is being used, and where its user is being removed.
        """
        return _RECORDED, [self.lock, self.user_id, *self.record(response, row)]

    def record(self, response: Response, row: Model) -> list[Any]:
        """The values of a record. The answer is kept as JSON, whatever page a browser was shown of it."""
        owner_id = getattr(row, "user_id", self.user_id)
        others = None if owner_id == self.user_id else owner_id
        return [*self, others, response.status_code, response["Location"], to_json(response.data).decode()]


def once(key: Key, request: Request, write: Write) -> Callable[[], Response]:
    """Wraps a write: under a key that was seen the stored answer comes back, and nothing runs.

    Args:
        request: authenticated.
        write: has the effect, and returns its answer, a 2xx, and the new row; every other answer is raised. Whose row
            it is stays there until the transaction ends.

    Returns:
        what is to be run in one transaction, and from the start in another attempt at it.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REUSED or IDEMPOTENCY_IN_PROGRESS, when it is run.
    """

    def write_once() -> Response:
        # Two statements, and the lock before the look-up: whoever had the lock released it after its record could be
        # seen, so the snapshot of the next statement has that record. One statement for both would look with a
        # snapshot from before it had the lock.
        look_up = _record.asked(user_id=key.user_id, operation=key.operation, key=key.text)
        ((alone,),), found = database().run((_LOCK, [key.lock]), look_up)
        # The model's first column, and what stands beside the look-up.
        ((seen_id, *_, held),) = found
        if seen_id is not None:
            ((seen, _),) = _record.read(found)
            return _replay(seen, key)
        if not alone:
            raise _in_progress()
        # A record that was added after a removal took the others would stay.
        if not held:
            request.auth.hold()
        response, row = write()
        _store(key, response, row)
        return response

    return write_once


# --- The header

# Visible ASCII; a bare key without the characters that lists, parameters and strings are made of (RFC 9651).
BARE_KEY = re.compile(rf"[!#-+\--:<-~]{{1,{LONGEST_KEY}}}")
QUOTED_KEY = re.compile(rf'"((?:[!#-\[\]-~]|\\["\\]){{1,{LONGEST_KEY}}})"')


def key_of(request: Request, policy: KeyPolicy) -> Key | None:
    """The key of a request; None where there is none, and need not be.

    Args:
        request: authenticated, with its body read.
        policy: what the view does with a key.

    Raises:
        DomainError: IDEMPOTENCY_KEY_REQUIRED or IDEMPOTENCY_KEY_INVALID.
    """
    given = None if policy is KeyPolicy.IGNORED else request.META.get(_VARIABLE)
    if given is None:
        if policy is KeyPolicy.REQUIRED:
            message = f"Send the header {HEADER} with a value of your own that is new for each payment, such as a UUID."
            raise _refused(ErrorCode.IDEMPOTENCY_KEY_REQUIRED, message)
        return None
    if policy is KeyPolicy.REFUSED:
        message = "The answer holds a secret and is not stored; send the request without the header."
        raise _refused(ErrorCode.IDEMPOTENCY_KEY_INVALID, message)
    key = _parse(given.strip(" \t"))
    if key is None:
        message = f'Send the header once, with 1 to {LONGEST_KEY} visible ASCII characters: abc-1 or "abc-1".'
        raise _refused(ErrorCode.IDEMPOTENCY_KEY_INVALID, message)
    operation = f"{request.method} {without_prefix(request.path)}"
    return Key(request.auth.user.pk, operation, key, _fingerprint(str(request.version), request.data))


def _parse(value: str) -> str | None:
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


# --- The fingerprint

# Exact for every number that fits into a body.
_EXACT = Context(prec=2 * 1024 * 1024, Emax=MAX_EMAX, Emin=MIN_EMIN)
# Exponents of fewer digits are in the reach of Decimal, whatever the digits of the mantissa move them by.
_REACH = 17
# Those that the parser converts have fewer digits, so that it does not matter what it made of a number.
_MOST_DIGITS = 64


def _fingerprint(version: str, body: Any) -> bytes:
    """A keyed digest: bodies hold people's data, and short ones could be guessed from a bare digest."""
    return salted_hmac("config.api.idempotency", f"{version} {canonical(body)}", settings.SECRET_KEY).digest()


def canonical(body: Any) -> str:
    """The one ASCII text of all bodies that mean the same: members sorted, numbers by value.

    Integers stand as JSON's. What stands for another number begins with NaN, which no body can hold.
    """
    # A body that is full of numbers repeats them, for there are few so short. They are known by their text: of numbers,
    # other than of texts, clients can choose so many as they like that have the same hash.
    known: dict[str, int | list[Any]] = {}

    def by_value(number: Decimal | UnusableNumber) -> int | list[Any]:
        token = number.token if isinstance(number, UnusableNumber) else str(number)
        if token not in known:
            known[token] = _by_value(token)
        return known[token]

    # It has no cycles to look for.
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=by_value, check_circular=False)


def _by_value(token: str) -> int | list[Any]:
    exact = _decimal_of(token)
    if isinstance(exact, str):
        return [math.nan, exact]
    reduced = exact.normalize(_EXACT)
    # Only what is known to be small: `int()` takes a power of ten for each exponent.
    if reduced.adjusted() < _MOST_DIGITS and (whole := int(reduced)) == reduced:
        return whole
    return [math.nan, str(reduced)]


def _decimal_of(token: str) -> Decimal | str:
    """The number of a token; where it is out of the reach of Decimal the one text of its value."""
    mantissa, _, exponent = token.lower().partition("e")
    if len(exponent) < _REACH:
        return Decimal(token)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).removeprefix("-").lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return Decimal(0)
    # Not `int()`, which refuses long ones, or takes quadratic time.
    power = _EXACT.add(Decimal(exponent), len(digits) - len(significant) - len(fraction))
    text = f"{'-' * mantissa.startswith('-')}{significant}E{power:f}"
    return Decimal(text) if power.adjusted() < _REACH else text


# --- The record

# Takes the lock of a key until the transaction ends, without ever waiting for it.
_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"
_RECORDS = IdempotencyRecord._meta.db_table
# By hand: the row is not looked at again.
_ADD = f"INSERT INTO {_RECORDS} (user_id, operation, key, fingerprint, owner_id, status, location, body, replays)"
_STORE = f"{_ADD} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 0)"
_SEEN = f"SELECT FROM {_RECORDS} WHERE user_id = %s AND operation = %s AND key = %s"
# All in one statement, which never waits for who uses the key or removes the user. The index of the keys sees also what
# was added after the snapshot of the statement: of two that add a key, one does.
_RECORDED = f"""
WITH alone AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(%s) AS got
), present AS MATERIALIZED (
    SELECT FROM {get_user_model()._meta.db_table} WHERE id = %s AND removed_at IS NULL AND (SELECT got FROM alone)
    FOR KEY SHARE SKIP LOCKED
), condition AS (
    {_ADD} SELECT %s, %s, %s, %s::bytea, %s::bigint, %s::integer, %s, %s, 0 FROM present
    ON CONFLICT (key, user_id, operation) DO NOTHING RETURNING true
)
"""  # noqa: S608 - of constants


def _replay(seen: IdempotencyRecord, key: Key) -> Response:
    if bytes(seen.fingerprint) != key.fingerprint:
        message = "This key was used for another request; send a new key with this body, or the old body with this key."
        raise _refused(ErrorCode.IDEMPOTENCY_KEY_REUSED, message)
    seen.count_replay()
    return Response(orjson.Fragment(seen.body), seen.status, headers={"Location": seen.location, REPLAYED: "true"})


def _store(key: Key, response: Response, row: Model) -> None:
    """Keeps the answer, and commits."""
    try:
        database().run((_STORE, key.record(response, row)), commit=True)
    except IntegrityError as error:
        cause = error.__cause__
        if not isinstance(cause, UniqueViolation) or cause.diag.table_name != _RECORDS:
            raise
        # Somebody ran without the lock, a release that locks in another way perhaps. The effect is rolled back.
        raise _in_progress() from None


def _in_progress() -> DomainError:
    message = "A request with this key is still running; send it again to get its answer."
    return DomainError(
        ErrorCode.IDEMPOTENCY_IN_PROGRESS, message, [Detail(HEADER, message)], headers={"Retry-After": "1"}
    )
