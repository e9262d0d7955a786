"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenBackendError, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from config.http.errors import invalid_token

# Of ours none is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
CLAIMS = {"exp": int, "iat": int, "jti": str, "sid": str, "sub": str, "token_type": str}
_TYPES = tuple(CLAIMS.values())
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Backend(TokenBackend):
    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        # The library skips what is not of the alphabet, so that one token could be spelt in many ways.
        if not _SHAPE.fullmatch(token):
            raise TokenBackendError("Token is of another form")
        return super().decode(token, verify)


class SessionToken(Token):
    """A token that names its session (`sid`) and user (`sub`).

    Issuer, audience, signature, algorithm and the times are checked by the library.
    """

    backend = Backend(
        api_settings.ALGORITHM,
        api_settings.SIGNING_KEY,
        audience=api_settings.AUDIENCE,
        issuer=api_settings.ISSUER,
    )
    session_id: str
    expires_at: datetime

    @classmethod
    def for_session(cls, session: LoginSession) -> Self:
        """A new token of a session."""
        token = cls()
        token["sid"], token["sub"] = str(session.pk), str(session.user_id)
        token.verify_own_claims()
        return token

    @classmethod
    def parse(cls, text: str) -> Self:
        """The token that a client presents.

        Raises:
            DomainError: INVALID_TOKEN, for whatever is not an unexpired token of this service and of this type.
        """
        if len(text) > MAX_CHARACTERS or not text.isascii():
            raise invalid_token()
        try:
            return cls(text)  # type: ignore[arg-type]  # the library's annotation is wrong
        except (TokenError, OSError, OverflowError, ValueError):
            # The latter three: `exp` may be a number that is no date, and what was signed no JSON.
            raise invalid_token() from None

    def get_token_backend(self) -> TokenBackend:
        return self.backend

    def verify(self) -> None:
        self.verify_own_claims()
        super().verify()

    def verify_own_claims(self) -> None:
        """Checks what the library does not: the type of each claim, and of the token.

        Raises:
            TokenError: a claim is missing or of another type.
            OSError, OverflowError, ValueError: `exp` is no date.
        """
        claims = self.payload
        if tuple(map(type, map(claims.get, CLAIMS))) != _TYPES or claims["token_type"] != self.token_type:
            raise TokenError("Token lacks a claim, or has it in another form")
        self.session_id = claims["sid"]
        if not _SESSION_ID.fullmatch(self.session_id):
            raise TokenError("Token names no session")
        self.expires_at = datetime.fromtimestamp(claims["exp"], UTC)


class AccessToken(SessionToken):
    token_type = "access"
    lifetime = api_settings.ACCESS_TOKEN_LIFETIME


class RefreshToken(SessionToken):
    token_type = "refresh"
    lifetime = api_settings.REFRESH_TOKEN_LIFETIME


class Pair(NamedTuple):
    """What a login gives, and each refresh anew."""

    access: AccessToken
    refresh: RefreshToken


def build_pair(session: LoginSession) -> Pair:
    """A new pair of a session."""
    return Pair(AccessToken.for_session(session), RefreshToken.for_session(session))


def get_digest(token: str) -> bytes:
    """What is kept of a refresh token. Its signature is random enough for a plain digest to keep it secret."""
    return hashlib.sha256(token.encode()).digest()
