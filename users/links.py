"""The tokens of links that are mailed to users: signed, bound to the user as it was, and stored nowhere."""

import hashlib
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.http import base36_to_int, int_to_base36

from config.http.errors import DomainError, ErrorCode
from users.models import Status, User


class Purpose(StrEnum):
    """The purpose of a link; also the kind of its outbox entry."""

    PASSWORD_RESET = "password_reset"
    EMAIL_VERIFICATION = "email_verification"
    INVITATION = "invitation"

    @property
    def lifetime(self) -> timedelta:
        return timedelta(minutes=30) if self is Purpose.PASSWORD_RESET else timedelta(days=7)


# With each of them, whoever reads the user's mail can set the password.
SETS_PASSWORD = (Purpose.PASSWORD_RESET, Purpose.INVITATION)


def get_state(user: User) -> str:
    """A digest of what a link is bound to: it dies when a part of that changes, and so with its first use.

    The password's hash is random enough for a plain digest to tell nothing.
    """
    email = (user.email, user.email_verified_at, user.email_is_trusted)
    bound_to = (user.password, user.credentials_ended_at, *email)
    return hashlib.sha256("\0".join(map(str, bound_to)).encode()).hexdigest()


def build_token(purpose: Purpose, user_id: int, state: str, issued_at: datetime, key: str | None = None) -> str:
    """The token of a link. The same arguments give the same token.

    Args:
        purpose: what the link is for.
        user_id: whose link it is.
        state: the user's `get_state` when the link was asked for.
        issued_at: when that was.
        key: what signs it instead of SECRET_KEY.
    """
    head = "-".join([purpose, int_to_base36(user_id), int_to_base36(int(issued_at.timestamp()))])
    signature = salted_hmac("users.links", f"{head} {state}", key, algorithm="sha256").hexdigest()
    return f"{head}-{signature}"


def find_user(token: str, *purposes: Purpose, lock: bool = False) -> tuple[User, Purpose]:
    """The active user of a link that is good, and what it is for.

    Args:
        token: as somebody presents it.
        purposes: those that are accepted.
        lock: whether the user is locked, so that of simultaneous uses one is the first.

    Raises:
        DomainError: NOT_FOUND for any other token.
    """
    expired = DomainError(ErrorCode.NOT_FOUND, "This link has expired or was used. Request a new one.")
    try:
        purpose, user_id, issued, _ = token.split("-")
        found, pk, seconds = Purpose(purpose), base36_to_int(user_id), base36_to_int(issued)
        issued_at = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise expired from None
    if found not in purposes or pk >= 2**63 or timezone.now() - issued_at >= found.lifetime:
        raise expired
    users = User.objects.filter(pk=pk, status=Status.ACTIVE)
    user = (users.select_for_update(no_key=True) if lock else users).first()
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if user is None or not any(
        constant_time_compare(build_token(found, pk, get_state(user), issued_at, key), token) for key in keys
    ):
        raise expired
    return user, found
