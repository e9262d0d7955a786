"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import NamedTuple, Self
from uuid import UUID

from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from config.api.errors import invalid_token

# Of ours none is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
CLAIMS = {"exp": int, "iat": int, "jti": str, "sid": str, "sub": str, "token_type": str}
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class SessionToken(Token):
    """A token that names its session (`sid`) and user (`sub`).

    Issuer, audience, signature, algorithm and the times are checked by the library.
    """

    @classmethod
    def of(cls, session: LoginSession) -> Self:
        token = cls()
        token["sid"], token["sub"] = str(session.pk), str(session.user_id)
        return token

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a token that somebody presents.

        Raises:
            DomainError: INVALID_TOKEN, for whatever is not an unexpired token of this service and of this type.
        """
        if len(text) > MAX_CHARACTERS or not _SHAPE.fullmatch(text):
            raise invalid_token()
        try:
            return cls(text)  # type: ignore[arg-type]  # the library's annotation is wrong
        except (TokenError, OSError, OverflowError, ValueError):
            # The latter three: `exp` may be a number that is no date, and `sid` no id.
            raise invalid_token() from None

    def verify(self) -> None:
        if not all(isinstance(self.get(name), kind) for name, kind in CLAIMS.items()):
            raise TokenError("Token lacks a claim, or has it in another form")
        UUID(self["sid"])
        super().verify()

    @property
    def session_id(self) -> UUID:
        return UUID(self["sid"])

    @property
    def expires_at(self) -> datetime:
        return datetime.fromtimestamp(self["exp"], UTC)


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


def pair_of(session: LoginSession) -> Pair:
    return Pair(AccessToken.of(session), RefreshToken.of(session))


def digest_of(token: str) -> bytes:
    """What is kept of a refresh token. Its signature is random enough for a plain digest to keep it secret."""
    return hashlib.sha256(token.encode()).digest()
