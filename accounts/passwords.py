"""Whether an email and a password belong together, asked by every door that takes both."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX, check_password, make_password
from django.core.cache import cache

from config import audit
from config.api.limits.login_attempts import login_attempt
from config.api.requests import AnyRequest
from config.http.blocking import get_blocking_backend
from config.http.errors import Detail, DomainError, ErrorCode
from config.http.request_state import get_state
from config.postgresql.transactions import run_in_transaction
from users.models import PASSWORD_PREFIX, User

Check = Callable[[str, str], bool]
# More than the check of a hash may take that came from elsewhere (users.password_hashes).
SECONDS_OF_A_REFUSAL = 0.7
SECONDS_TO_REMEMBER = 60
_KEY = secrets.token_bytes(32)


def prove(request: AnyRequest, email: str, password: str, *, door: str, check: Check = check_password) -> User:
    """Finds the active user with this email and password.

    Every refusal takes the same time and looks the same: for an unknown email a password is hashed, too. While there
    are users with imported hashes, every refusal takes as long as the slowest of these hashes could. The first login
    of such a user rehashes the password.

    Args:
        request: the request that brings the password, for the limits on guessing.
        door: which endpoint received it, for the audit trail.
        check: how the password is compared with the stored hash of an active user.

    Raises:
        DomainError: INVALID_CREDENTIALS, or RATE_LIMITED; FORBIDDEN where the email must be verified and is not.
    """
    users, began = User.objects.all(), time.monotonic()
    # All spellings of an email have one limit, whether or not it is somebody's.
    (account,) = users.fold_emails(email)
    user = users.with_email(email).first()
    with login_attempt(request, account, user=user, door=door) as right:
        if user is None or not user.is_active:
            # Always hashed: the time of a quicker check would tell who is there, or that the password is right.
            check_password(password, user.password if user else UNUSABLE_PASSWORD_PREFIX)
            right.append(False)
        else:
            right.append(check(password, user.password) and _hash_anew(request, user, password))
        if user is None or not any(right):
            if users.with_foreign_hash().exists():
                _hold_back(request, began)
            raise DomainError(ErrorCode.INVALID_CREDENTIALS)
        if settings.REQUIRE_VERIFIED_EMAIL and user.email_verified_at is None:
            message = "Verify your email first: use the link that was sent to it, or reset your password."
            raise DomainError(ErrorCode.FORBIDDEN, message, [Detail("email", message)])
        return user


def _hold_back(request: AnyRequest, began: float) -> None:
    """Delays the response: in the server if it can, because other requests need this thread."""
    state = get_state(request.META)
    if state.send_at is None:
        get_blocking_backend().sleep(max(0, began + SECONDS_OF_A_REFUSAL - time.monotonic()))
    else:
        # From when it came: how long it waited for a thread tells of the hashes before it.
        state.send_at += SECONDS_OF_A_REFUSAL


def _hash_anew(request: AnyRequest, user: User, password: str) -> bool:
    """Hashes a right password that was hashed elsewhere. False where it was changed at the same time."""
    stored = user.password
    if stored.startswith(PASSWORD_PREFIX) or get_state(request.META).stand_in is not None:
        return True
    hashed = make_password(password)

    def write() -> int:
        written = User.objects.filter(pk=user.pk, password=stored).update(password=hashed)
        if written:
            audit.record("password.rehashed", user=user)
        return written

    run_in_transaction(write)
    # The hash that this session is opened with. Another login may have been first.
    user.refresh_from_db(fields=["password"])
    return user.password == hashed or check_password(password, user.password)


def check_and_remember(password: str, stored: str) -> bool:
    """Checks a password. A good one is remembered for a minute by this process alone.

    What is remembered is a digest of the stored hash and the password together, under a key that nobody else has.
    Each request reads the stored hash, so no earlier digest matches a changed password.
    """
    text = f"{stored}\0{password}".encode("utf-8", "surrogatepass")
    digest = hmac.digest(_KEY, text, hashlib.sha256).hex()
    if cache.get(digest):
        return True
    is_good = check_password(password, stored)
    if is_good:
        cache.set(digest, True, SECONDS_TO_REMEMBER)
    return is_good
