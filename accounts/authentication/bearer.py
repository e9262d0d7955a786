"""`Authorization: Bearer <token>` (RFC 6750): a JWT from login or an OAuth access token, distinguished by its form."""

from django.db.models import F
from rest_framework.request import Request

from accounts.authentication import oauth
from accounts.models import LoginSession
from accounts.tokens import AccessToken
from config.api.limits.quotas import CredentialLookup
from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import invalid_token
from config.http.headers import OPTIONAL_WHITESPACE
from config.http.request_state import get_state
from users.models import User

# RFC 7515, section 3.1: header, payload and signature. An OAuth token of ours has no dot.
JWT_DOTS = 2

# A removed user's session is found, too: `is_usable` asks for an active user, and this runs for each request.
_living = (
    LoginSession._base_manager.select_related("user")
    .only("user", "password_digest", "previous_digest", "access_id", "access_used_at", "ended_at")
    .filter(ended_at=None)
    .annotate(principal_id=F("user_id"))
)
_sessions = CredentialLookup(lambda session_id: _living.filter(pk=session_id))


def resolve(header: str, request: Request) -> Principal:
    """The principal of a token: every scope for a JWT, the granted ones for OAuth.

    Args:
        header: one value of the Authorization header, of the scheme Bearer.
        request: that sent it, and is counted against the quota of the token's user.

    Raises:
        DomainError: INVALID_TOKEN for a token that is not, or no longer, valid.
    """
    token = header.partition(" ")[2].strip(OPTIONAL_WHITESPACE)
    if token.count(".") != JWT_DOTS:
        return oauth.resolve(token, request)
    access = AccessToken.parse(token)
    return Principal(_fetch_user(access, request), ALL_SCOPES, "jwt", access.expires_at)


def _fetch_user(token: AccessToken, request: Request) -> User:
    """The user an access token acts for; the look at its session counts the request.

    Raises:
        DomainError: INVALID_TOKEN when the session is over, the user inactive or removed, or the password changed.
    """
    session = _sessions.find(request, session_id=token.session_id)
    if session is None or str(session.user_id) != token.payload["sub"] or not session.is_usable:
        raise invalid_token()
    if get_state(request.META).stand_in is None:
        session.note_use(token.payload["jti"])
    return session.user
