"""Logins with a password: sessions whose tokens are rotated, watched for reuse, and ended together."""

from accounts.models import LoginSession, hash_secret, is_living_oauth_token
from accounts.sessions import describe_client
from accounts.tokens import Pair, RefreshToken, SessionToken, build_pair
from config import audit
from config.http.errors import Detail, invalid, invalid_token
from config.postgresql import transactions
from users.models import User


def log_in(user: User) -> Pair:
    """Opens a session for a user who has just proven the password."""
    session = LoginSession(user=user, password_digest=user.get_session_auth_hash(), **describe_client())
    pair = build_pair(session)
    session.refresh_digest = hash_secret(str(pair.refresh))
    session.access_id = pair.access["jti"]
    session.expires_at = pair.refresh.expires_at
    session.save(force_insert=True)
    audit.record("login", user=user, door="login")
    return pair


def refresh(presented: str) -> Pair:
    """Exchanges the valid refresh token of a session for a new pair.

    Outside of a transaction: the end of a session whose token was used twice must outlive the refusal.

    Raises:
        DomainError: INVALID_TOKEN. When the token was used before, the session is over for all its tokens, unless it
            was used a moment ago and nothing was done with the new pair.
    """
    token, digest = RefreshToken.parse(presented), hash_secret(presented)
    session = _fetch_session(token)
    pair = transactions.run_in_transaction(lambda: _exchange(session, digest)) if session else None
    if pair is None:
        raise invalid_token()
    return pair


def _exchange(session: LoginSession, digest: bytes) -> Pair | None:
    """Rotates the session, or ends it where the token was used before; either together with its event.

    A rotation without its event would be answered as a failure, with the token used up.
    """
    # First, as by whoever ends the session with all credentials of its user: the event holds the user in the end.
    if not User.objects.lock_key_share_with_credentials(session.user):
        return None
    if session.is_usable:
        pair = build_pair(session)
        new = {"refresh_digest": hash_secret(str(pair.refresh)), "access_id": pair.access["jti"]}
        if session.rotate(digest, **new, expires_at=pair.refresh.expires_at):
            audit.record("token.refreshed", user=session.user)
            return pair
    if session.end_if_reused(digest):
        audit.record("token.reused", user=session.user)
    return None


def log_out(presented: str) -> None:
    """Ends the session of a refresh token, also of a used or expired one.

    What is no token of this service, or one of a session that is over, needs no end.

    Raises:
        DomainError: VALIDATION_ERROR on `refresh_token` for any other token of this service, which would live on.
    """
    token = RefreshToken.parse_for_log_out(presented)
    if token is None and is_living_oauth_token(presented):
        message = "This token belongs to an OAuth application. Revoke it at /oauth/revoke."
        raise invalid(Detail("refresh_token", message))
    session = _fetch_session(token) if token else None
    if session is not None and session.end():
        audit.record("logout", user=session.user)


def _fetch_session(token: SessionToken) -> LoginSession | None:
    """The session with its user, in one query."""
    session = LoginSession.objects.select_related("user").filter(pk=token.session_id).first()
    return session if session and str(session.user_id) == token["sub"] else None
