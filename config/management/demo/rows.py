"""The demo rows by number, from the lists in this folder."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.utils.text import slugify

from users.models import Role, Status

Row = Mapping[str, object]

# All times are between these two: up to now, so that the charts of the last days are not empty.
END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
SIGNUP_PERIOD = timedelta(days=790)
START = END - SIGNUP_PERIOD - timedelta(days=1)
_PRIME = 1_000_003

# Matches no password: demo users cannot log in.
UNUSABLE_PASSWORD = "!"
DOMAINS = ("example.com", "example.org", "example.net")
VARIANTS = ["", "", "", ", blue", ", dark green", ", grey", ", large", ", small", " (second hand)", ", gift wrapped"]
QUANTITIES = [1] * 12 + [2] * 6 + [3, 3, 4, 4, 5, 6, 8, 10, 12, 24, 50, 250]
CENTS = [0, 0, 0, 50, 90, 95, 99, 99, 49, 25, 10, 30]


class Culture(NamedTuple):
    """The names of one language.

    Attributes:
        pattern: how a full name is made of `{given}` and `{family}`.
        given: with an ASCII form for an email, such as `Олена/olena`, where it does not follow from the letters.
        family: likewise.
    """

    language: str
    pattern: str
    given: list[str]
    family: list[str]


class Thread(NamedTuple):
    """A post and its comments.

    Attributes:
        is_multilingual: whether the comments come from one speaker of each language, in the order of CULTURES.
    """

    language: str
    title: str
    body: str
    comments: list[str]
    is_multilingual: bool = False


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


ITEMS = _read("items.txt").splitlines()
CULTURES = [Culture(**culture) for culture in json.loads(_read("names.json"))]
THREADS = [Thread(**thread) for thread in json.loads(_read("threads.json"))]


def scatter(number: int, stride: int, count: int) -> int:
    """A value from 0 up to `count`: neighbours get distant values, and a million rows each value equally often.

    Args:
        number: the number of the row.
        stride: a prime. Traits with different strides are independent of each other.
        count: how many values there are.
    """
    return number * stride % _PRIME * count // _PRIME


def compute_signup_time(position: int, total: int) -> datetime:
    """When the user at a position among `total` signed up: evenly over SIGNUP_PERIOD, at all hours of the day."""
    return START + SIGNUP_PERIOD * ((position + scatter(position, 619_979, 1000) / 1000) / total)


def compute_later_time(start: datetime, number: int) -> datetime:
    """A time at most 30 days after `start`, and not after END.

    Rows inserted user by user are then roughly in the order of time on disk, as in a table that grew.
    """
    return start + min(timedelta(days=30), END - start) * (scatter(number, 336_403, 1_000_000) / 1_000_000)


def build_user(number: int, created_at: datetime, email_suffix: str = "") -> Row:
    """The user of a number; the suffix ends the local part of the email."""
    name, local_part = _build_name(number)
    role = Role.ADMIN if number % 1000 in {3, 101} else Role.SUPPORT if number % 50 == 8 else Role.USER
    # An active administrator who cannot log in would count as the last one, whom the service does not remove.
    is_inactive = role == Role.ADMIN or scatter(number, 271_829, 8) == 0
    return {
        "name": name,
        "email": f"{local_part}{email_suffix}@{DOMAINS[scatter(number, 417_941, 3)]}",
        "role": role.value,
        "status": (Status.INACTIVE if is_inactive else Status.ACTIVE).value,
        "password": UNUSABLE_PASSWORD,
        "created_at": created_at,
        "updated_at": created_at,
    }


def _build_name(number: int) -> tuple[str, str]:
    """The name of a person, and its ASCII form for an email."""
    turn, index = divmod(number, len(CULTURES))
    _, pattern, givens, families = CULTURES[index]
    # Along the diagonals, all pairs of a given and a family name come once before any comes again.
    shift, index = divmod(turn, len(givens))
    given, given_ascii = _parse_name(givens[index])
    family, family_ascii = _parse_name(families[(index + shift) % len(families)])
    name = pattern.format(given=given, family=family)
    return f"{name} 🌻" if number % 101 == 26 else name, f"{given_ascii}.{family_ascii}"


@cache
def _parse_name(text: str) -> tuple[str, str]:
    written, _, ascii_form = text.partition("/")
    return written, ascii_form or slugify(written)


def build_order(number: int, created_at: datetime) -> Row:
    item = ITEMS[scatter(number, 387_137, len(ITEMS))]
    variant = VARIANTS[scatter(number, 839_117, len(VARIANTS))]
    qty = QUANTITIES[scatter(number, 173_867, len(QUANTITIES))]
    return {"item": f"{item}{variant}", "qty": qty, "created_at": created_at}


def build_payment(number: int, created_at: datetime) -> Row:
    """Many amounts are small, few are high, and their cents are typical of prices."""
    magnitude = scatter(number, 521_393, 3)
    whole = 1 + scatter(number, 648_391, (20, 200, 2_000)[magnitude])
    amount = Decimal(whole * 100 + CENTS[scatter(number, 918_733, len(CENTS))]).scaleb(-2)
    return {"amount": amount, "created_at": created_at}


def build_post(number: int, created_at: datetime) -> Row:
    thread = THREADS[scatter(number, 443_629, len(THREADS))]
    return {"title": thread.title, "body": thread.body, "created_at": created_at, "updated_at": created_at}
