"""The fingerprint of a request body: a keyed digest of what it means, however it is written."""

import json
import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from django.conf import settings

from config.http.digests import salted_hmac
from config.http.json import UnusableNumber

# Exact for every number that fits into a body.
_EXACT = Context(prec=2 * 1024 * 1024, Emax=MAX_EMAX, Emin=MIN_EMIN)
# Exponents of fewer digits are in the reach of Decimal, whatever the digits of the mantissa move them by.
_REACH = 17
# Numbers that the parser converts have fewer digits, so that it does not matter what it made of them.
_MAX_DIGITS = 64


def build_fingerprint(version: str, body: Any) -> bytes:
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
    exact = _parse_decimal(token)
    if isinstance(exact, str):
        return [math.nan, exact]
    reduced = exact.normalize(_EXACT)
    # Only what is known to be small: `int()` takes a power of ten for each exponent.
    if reduced.adjusted() < _MAX_DIGITS and (whole := int(reduced)) == reduced:
        return whole
    return [math.nan, str(reduced)]


def _parse_decimal(token: str) -> Decimal | str:
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
