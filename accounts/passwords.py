"""Whether an email and a password belong together, asked by every door that takes both."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from threading import Lock

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX, check_password

from config.api.limits.login_attempts import login_attempt
from config.api.requests import AnyRequest
from config.http.errors import Detail, DomainError, ErrorCode
from users.models import User

Check = Callable[[str, str], bool]


def prove(request: AnyRequest, email: str, password: str, *, door: str, check: Check = check_password) -> User:
    """Finds the active user with this email and password.

    It takes the same time and ends the same whatever is wrong: for an unknown email a password is hashed, too.

    Args:
        request: the request that brings the password, for the limits on guessing.
        door: where it came in, for the audit trail.
        check: how the password is compared with the stored hash of an active user.

    Raises:
        DomainError: INVALID_CREDENTIALS, or RATE_LIMITED; FORBIDDEN where the email must be verified and is not.
    """
    users = User.objects.all()
    # All spellings of an email have one limit, whether or not it is somebody's.
    (account,) = users.fold_emails(email)
    user = users.with_email(email).first()
    with login_attempt(request, account, user=user, door=door) as right:
        if user is None or not user.is_active:
            # Always hashed: the time of a quicker check would tell who is there, or that the password is right.
            check_password(password, user.password if user else UNUSABLE_PASSWORD_PREFIX)
            right.append(False)
            raise DomainError(ErrorCode.INVALID_CREDENTIALS)
        right.append(check(password, user.password))
        if not any(right):
            raise DomainError(ErrorCode.INVALID_CREDENTIALS)
        if settings.REQUIRE_VERIFIED_EMAIL and user.email_verified_at is None:
            message = "Verify your email first, by the link that was mailed to it, or reset your password."
            raise DomainError(ErrorCode.FORBIDDEN, message, [Detail("email", message)])
        return user


class RememberedChecks:
    """Checks of passwords, of which the good ones are remembered for a minute by this process alone.

    What is remembered is a digest of the stored hash and the password together, under a key that nobody else has.
    The stored hash is read at each request, so a changed password is found under no digest of before.
    """

    SECONDS = 60
    MOST = 10_000

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        # In the order in which they end: all live equally long.
        self._ends: dict[bytes, float] = {}
        self._lock = Lock()

    def __call__(self, password: str, stored: str) -> bool:
        digest = hmac.digest(self._key, f"{stored}\0{password}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        if self._ends.get(digest, 0) > time.monotonic():
            return True
        good = check_password(password, stored)
        if good:
            self._remember(digest)
        return good

    def _remember(self, digest: bytes) -> None:
        with self._lock:
            self._ends.pop(digest, None)
            if len(self._ends) >= self.MOST:
                del self._ends[next(iter(self._ends))]
            self._ends[digest] = time.monotonic() + self.SECONDS
