"""The demo rows by number, from the lists in this folder."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from config.management.demo.names import build_person
from users.models import Role, Status

# All times are between these two: up to now, so that the charts of the last days are not empty.
END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
SIGNUP_PERIOD = timedelta(days=790)
START = END - SIGNUP_PERIOD - timedelta(days=1)
_SIGNUP_MICROSECONDS = SIGNUP_PERIOD // timedelta(microseconds=1)
_FOLDER = Path(__file__).parent
_PRIME = 1_000_003

# Matches no password: demo users cannot log in.
UNUSABLE_PASSWORD = "!"
DOMAINS = ("example.com", "example.org", "example.net")
VARIANTS = ["", "", "", ", blue", ", dark green", ", grey", ", large", ", small", " (second hand)", ", gift wrapped"]
QUANTITIES = [1] * 12 + [2] * 6 + [3, 3, 4, 4, 5, 6, 8, 10, 12, 24, 50, 250]
CENTS = [0, 0, 0, 50, 90, 95, 99, 99, 49, 25, 10, 30]


class DemoUser(NamedTuple):
    name: str
    email: str
    role: str
    status: str
    password: str
    created_at: datetime
    updated_at: datetime


class DemoOrder(NamedTuple):
    item: str
    qty: int
    created_at: datetime


class DemoPost(NamedTuple):
    title: str
    body: str
    created_at: datetime
    updated_at: datetime


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
    return (_FOLDER / name).read_text(encoding="utf-8")


ITEMS = _read("items.txt").splitlines()
# Lists of texts that are combined to posts, by the part that each fills.
POST_PARTS: dict[str, list[str]] = json.loads(_read("posts.json"))
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
    thousandths = position * 1000 + scatter(position, 619_979, 1000)
    return START + timedelta(microseconds=_SIGNUP_MICROSECONDS * thousandths // (total * 1000))


def compute_later_time(start: datetime, number: int, stride: int, end: datetime = END) -> datetime:
    """A time from `start` up to `end`, scattered by the number of the row and a stride (see `scatter`)."""
    return start + (end - start) * scatter(number, stride, 1_000_000) / 1_000_000


def compute_time_within_month(start: datetime, number: int) -> datetime:
    """A time at most 30 days after `start`, and not after END.

    Rows inserted user by user are then roughly in the order of time on disk, as in a table that grew.
    """
    return compute_later_time(start, number, 336_403, min(start + timedelta(days=30), END))


def build_user(number: int, created_at: datetime, email_suffix: str = "") -> DemoUser:
    """The user of a number; the suffix ends the local part of the email."""
    name, local_part, _ = build_person(number)
    is_updated = scatter(number, 479_909, 4) == 0
    return DemoUser(
        name,
        f"{local_part}{email_suffix}@{DOMAINS[scatter(number, 417_941, 3)]}",
        role := _choose_role(number),
        choose_status(number, role),
        UNUSABLE_PASSWORD,
        created_at,
        compute_later_time(created_at, number, 224_737) if is_updated else created_at,
    )


def _choose_role(number: int) -> str:
    rank = scatter(number, 732_713, 10_000)
    return Role.ADMIN.value if rank == 0 else Role.SUPPORT.value if rank <= 100 else Role.USER.value


def choose_status(number: int, role: str) -> str:
    """The status of a user: one in eight is inactive, and so is every administrator."""
    # An active administrator who cannot log in would count as the last one, whom the service does not remove.
    is_inactive = role == Role.ADMIN.value or scatter(number, 271_829, 8) == 0
    return Status.INACTIVE.value if is_inactive else Status.ACTIVE.value


def build_order(number: int, created_at: datetime) -> DemoOrder:
    """The order of a number."""
    item = ITEMS[scatter(number, 387_137, len(ITEMS))]
    variant = VARIANTS[scatter(number, 839_117, len(VARIANTS))]
    return DemoOrder(f"{item}{variant}", QUANTITIES[scatter(number, 173_867, len(QUANTITIES))], created_at)


def build_amount(number: int) -> Decimal:
    """A price: many are small, few are high, and their cents are typical of prices."""
    magnitude = scatter(number, 521_393, 3)
    whole = 1 + scatter(number, 648_391, (20, 200, 2_000)[magnitude])
    return Decimal(whole * 100 + CENTS[scatter(number, 918_733, len(CENTS))]).scaleb(-2)


def build_post(number: int, created_at: datetime) -> DemoPost:
    """A post of any author. Every fourth is the post of a thread, the others are combined from POST_PARTS."""
    if number % 4 == 0:
        thread = THREADS[scatter(number, 443_629, len(THREADS))]
        title, body = thread.title, thread.body
    else:
        title = _choose_part("titles", number, 587_131).format(_choose_part("subjects", number, 311_537))
        sentences = {"openings": 134_921, "middles": 268_937, "endings": 402_761}
        body = " ".join(_choose_part(part, number, stride) for part, stride in sentences.items())
    is_updated = scatter(number, 781_283, 5) == 0
    updated_at = compute_later_time(created_at, number, 195_533) if is_updated else created_at
    return DemoPost(title, body, created_at, updated_at)


def _choose_part(part: str, number: int, stride: int) -> str:
    texts = POST_PARTS[part]
    return texts[scatter(number, stride, len(texts))]
