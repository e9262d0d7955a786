"""Sessions of browsers, Django's in the database, and what a user is shown of these and of its log-ins."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import LoginSession, Session
from config import audit
from config.http.client_address import client_address
from config.http.errors import not_found
from config.http.request_state import RequestState, present_state
from config.postgresql.transactions import run_in_transaction
from users.models import User

MAX_USER_AGENT_LENGTH = 300
# The latest of each kind.
MAX_SHOWN = 100


def describe_client() -> dict[str, str]:
    """The origin of the current request, by which its user recognizes the session that begins with it."""
    request = (present_state.get() or RequestState()).request
    if request is None:
        return {"address": "", "user_agent": ""}
    agent = "".join(filter(str.isprintable, request.META.get("HTTP_USER_AGENT", "")))
    return {"address": str(client_address(request)), "user_agent": agent[:MAX_USER_AGENT_LENGTH]}


def get_public_id(key: str) -> UUID:
    """The id of a browser's session: its key is a secret of 165 bits, which the digest does not give away."""
    return UUID(bytes=hashlib.sha256(key.encode()).digest()[:16])


class SessionStore(DatabaseSessionStore):
    """Django's, but of its user, and with keys that are validated before the query: PostgreSQL refuses a NUL."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _validate_session_key(self, key: str) -> bool:
        is_valid: bool = super()._validate_session_key(key)  # type: ignore[misc]  # not in the stubs
        return is_valid and key.isascii() and key.isalnum()

    def _get_session_from_db(self) -> Session | None:
        row: Session | None = super()._get_session_from_db()  # type: ignore[misc]  # not in the stubs
        if row is not None and row.user_id is not None:
            row.note_use()
        return row

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        row.public_id = get_public_id(row.session_key)
        row.last_used_at = timezone.now()
        return cast(Session, row)


def fetch_sessions(user: Any) -> list[dict[str, object]]:
    """The sessions of a user that can be used, of each kind the latest first."""
    return [*map(_describe_login, _get_logins(user)[:MAX_SHOWN]), *_describe_browsers(user)]


def _describe_login(login: LoginSession) -> dict[str, object]:
    return {
        "id": login.pk,
        "kind": "jwt",
        "created_at": login.created_at,
        "last_used_at": max(filter(None, (login.created_at, login.rotated_at, login.access_used_at))),
        "address": login.address or None,
        "user_agent": login.user_agent,
    }


def _get_hashes(user: User) -> list[str]:
    return [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]


def _get_logins(user: User) -> QuerySet[LoginSession]:
    now = timezone.now()
    return user.login_sessions.filter(ended_at=None, expires_at__gt=now, password_digest__in=_get_hashes(user))


def _describe_browsers(user: User) -> Iterator[dict[str, object]]:
    hashes = _get_hashes(user)
    for row in user.sessions.filter(expire_date__gt=timezone.now()).order_by("-last_used_at")[:MAX_SHOWN]:
        data = SessionStore().decode(row.session_data)
        if data.get(HASH_SESSION_KEY) in hashes:
            yield {
                "id": row.public_id,
                "kind": "session",
                "created_at": datetime.fromisoformat(data["signed_in_at"]),
                "last_used_at": row.last_used_at,
                "address": data.get("address") or None,
                "user_agent": data.get("user_agent", ""),
            }


def end_session(user: Any, name: str) -> None:
    """Ends a session of a user, of whichever kind, at once.

    Args:
        user: whose it is.
        name: its id, as a UUID is written.

    Raises:
        DomainError: NOT_FOUND where there is none.
    """
    try:
        session_id = UUID(name)
    except ValueError:
        raise not_found() from None

    def end() -> int:
        # First, as everywhere: the event holds the user in the end.
        User.objects.lock_key_share(user.pk)
        ended = _get_logins(user).filter(pk=session_id).update(ended_at=timezone.now())
        ended = ended or user.sessions.filter(public_id=session_id).delete()[0]
        if ended:
            audit.record("session.ended", user=user)
        return ended

    if not run_in_transaction(end):
        raise not_found()
