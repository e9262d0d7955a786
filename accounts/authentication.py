"""Who is calling: the one DRF authentication class, over a function for each kind of credential."""

from base64 import b64decode
from functools import partial

from django.db.models import F
from django.db.models.functions import Coalesce, Now
from oauth2_provider.models import AbstractAccessToken, get_access_token_model
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from accounts.models import APIKey, APIKeyQuerySet, LoginSession, get_digest, hash_secret
from accounts.passwords import check_and_remember, prove
from accounts.tokens import AccessToken
from config import audit
from config.api.exceptions import CHALLENGE
from config.api.limits.quotas import CredentialLookup, consume_quota
from config.api.principal import ALL_SCOPES, Principal
from config.api.requests import AnyRequest
from config.http.errors import DomainError, ErrorCode, invalid_token
from config.http.headers import OPTIONAL_WHITESPACE, split_credentials, split_values
from config.http.request_state import get_state
from users.models import User

# RFC 7515, section 3.1: header, payload and signature. An OAuth token of ours has no dot.
JWT_DOTS = 2

# Removed users' keys and sessions are found, too: they are asked for an active user, and this runs for each request.
_keys = CredentialLookup(
    lambda digest: (
        APIKeyQuerySet(APIKey)
        .usable()
        .select_related("user")
        .only("user", "prefix", "scopes", "expires_at", "last_used_at")
        .filter(digest=digest)
        .annotate(principal_id=F("user_id"))
    )
)
_living_sessions = (
    LoginSession._base_manager.select_related("user")
    .only("user", "password_digest", "previous_digest", "access_id", "access_used_at", "ended_at")
    .filter(ended_at=None)
    .annotate(principal_id=F("user_id"))
)
_sessions = CredentialLookup(lambda session_id: _living_sessions.filter(pk=session_id))
_tokens = CredentialLookup(
    lambda checksum: (
        get_access_token_model()
        .objects.select_related("user", "application__owner")
        .filter(token_checksum=checksum, expires__gt=Now())
        .annotate(principal_id=Coalesce("user_id", "application__owner_id"))
    )
)
_django = SessionAuthentication()


class PrincipalAuthentication(BaseAuthentication):
    """Resolves the one credential of a request to a user and scopes.

    The session cookie is looked at only where the request carries no explicit credential, so that a bad one never
    falls back to it.
    """

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        keys = [*split_values(request.META.get("HTTP_X_API_KEY")), *get_state(request.META).secret_parameters]
        presented = [partial(resolve_api_key, key) for key in keys]
        headers = split_credentials(request.META.get("HTTP_AUTHORIZATION"), ("bearer", "basic"))
        for header in headers:
            resolve = resolve_bearer if header.lower().startswith("bearer ") else resolve_basic
            presented.append(partial(resolve, header))
        if len(presented) > 1:
            raise DomainError(ErrorCode.CREDENTIAL_CONFLICT)
        principal = presented[0](request) if presented else resolve_session(request)
        return principal and (principal.user, principal)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def resolve_api_key(key: str, request: Request) -> Principal:
    """`X-API-Key: <key>` or `?api_key=<key>`: the principal of an API key, whose use is noted.

    Args:
        key: as it was sent.
        request: that sent it, and is counted against the quota of the key's user.

    Raises:
        DomainError: INVALID_CREDENTIALS for a key that is unknown, expired or revoked, or whose user is inactive.
    """
    row = _keys.find(request, digest=hash_secret(key))
    if row is None or not row.user.is_active:
        # First: a request that the quota refuses writes nothing.
        consume_quota(request, None)
        audit.record("api_key.refused", user=row and row.user)
        raise DomainError(ErrorCode.INVALID_CREDENTIALS, "The API key is invalid, revoked or expired.")
    row.note_use()
    return Principal(row.user, frozenset(row.scopes), "api_key", row.expires_at, row.prefix)


def resolve_basic(header: str, request: Request) -> Principal:
    """`Authorization: Basic <base64 of email:password>` (RFC 7617, in UTF-8): every scope.

    Args:
        header: one value of the Authorization header, of any scheme but Bearer.
        request: that sent it; for its address, by which failed login attempts are limited.

    Raises:
        DomainError: INVALID_TOKEN for another scheme, INVALID_CREDENTIALS for a wrong pair or one that cannot be
            decoded, RATE_LIMITED after too many failed attempts.
    """
    scheme, _, pair = header.partition(" ")
    if scheme.lower() != "basic":
        raise DomainError(
            ErrorCode.INVALID_TOKEN, "The scheme of the Authorization header is not supported. Use Bearer or Basic."
        )
    try:
        email, _, password = b64decode(pair.strip(OPTIONAL_WHITESPACE), validate=True).decode().partition(":")
    except ValueError:
        raise DomainError(ErrorCode.INVALID_CREDENTIALS) from None
    # The pair comes with every request, and the hash of a password is made to be slow.
    return Principal(prove(request, email, password, door="basic", check=check_and_remember), ALL_SCOPES, "basic")


def resolve_bearer(header: str, request: Request) -> Principal:
    """`Authorization: Bearer <token>` (RFC 6750): every scope for a JWT from login, the granted ones for OAuth.

    Args:
        header: one value of the Authorization header, of the scheme Bearer.
        request: that sent it, and is counted against the quota of the token's user.

    Raises:
        DomainError: INVALID_TOKEN for a token that is not, or no longer, valid.
    """
    token = header.partition(" ")[2].strip(OPTIONAL_WHITESPACE)
    if token.count(".") != JWT_DOTS:
        row = find_usable_token(token, request)
        if row is None:
            raise invalid_token()
        return Principal(get_acting_user(row), get_scopes(row), "oauth", row.expires, row.application.client_id)
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


def resolve_session(request: Request) -> Principal | None:
    """The cookie of a sign-in, for the browsable API; None without a session.

    Raises:
        rest_framework.exceptions.PermissionDenied: the request is unsafe and fails the CSRF check.
    """
    found = _django.authenticate(request)
    return Principal(found[0], ALL_SCOPES, "session") if found else None


# --- OAuth's access tokens, of a user or of an application that acts for its owner


def find_usable_token(token: str, request: AnyRequest | None = None) -> AbstractAccessToken | None:
    """The access token as it is stored, with its user and application, in one query; None when it allows nothing.

    The query counts the request whose credential it is, if it is one's.
    """
    row = _tokens.find(request, checksum=get_digest(token))
    user = row and get_acting_user(row)
    if user is None or not user.is_active:
        return None
    owner = row.application.owner
    # An application goes with its owner, and the tokens that it has of others go with it.
    return row if owner is None or owner.removed_at is None else None


def get_acting_user(token: AbstractAccessToken) -> User:
    """The user who granted the token; a client-credentials token has none, and acts for its application's owner."""
    return token.user or token.application.owner


def get_scopes(token: AbstractAccessToken) -> frozenset[str]:
    """The granted scopes that the application is still allowed."""
    return frozenset(token.scope.split()) & frozenset(token.application.allowed_scopes)
