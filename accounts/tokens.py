"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from datetime import UTC, datetime
from functools import cached_property
from hmac import compare_digest
from typing import Any, NamedTuple, Self

from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenBackendError, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from config.http import base64url
from config.http.errors import invalid_token

# Of ours none is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
CLAIMS = {"exp": int, "iat": int, "jti": str, "sid": str, "sub": str, "token_type": str}
_KINDS = tuple(CLAIMS.values())
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_json = json.JSONDecoder()


class Backend(TokenBackend):
    """The library's, and a look of our own that takes a sixth of its time; it judges every token that does not pass."""

    @cached_property
    def _header(self) -> str:
        return self.encode({}).partition(".")[0]

    @cached_property
    def _keyed(self) -> hmac.HMAC:
        return hmac.new(self.prepared_signing_key, digestmod="sha256")

    def _signature_of(self, signed: str) -> str:
        digest = self._keyed.copy()
        digest.update(signed.encode())
        return base64url.encode(digest.digest())

    def plainly_signed(self, token: str) -> Any:
        """What a token holds that was signed here, and has just the header of those made here; None of any other."""
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        if header != self._header or not compare_digest(signature, self._signature_of(signed)):
            return None
        return _json.raw_decode(base64url.decode(payload).decode())[0]

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        # The library skips what is not of the alphabet, so that one token could be spelt in many ways.
        if not _SHAPE.fullmatch(token):
            raise TokenBackendError("Token is of another form")
        return super().decode(token, verify)


_backend = Backend(
    api_settings.ALGORITHM,
    api_settings.SIGNING_KEY,
    audience=api_settings.AUDIENCE,
    issuer=api_settings.ISSUER,
)


class SessionToken(Token):
    """A token that names its session (`sid`) and user (`sub`).

    Issuer, audience, signature, algorithm and the times are checked by the library.
    """

    session_id: str
    expires_at: datetime

    @classmethod
    def of(cls, session: LoginSession) -> Self:
        token = cls()
        token["sid"], token["sub"] = str(session.pk), str(session.user_id)
        token.verify_own()
        return token

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a token that somebody presents.

        Raises:
            DomainError: INVALID_TOKEN, for whatever is not an unexpired token of this service and of this type.
        """
        if len(text) > MAX_CHARACTERS or not text.isascii():
            raise invalid_token()
        try:
            return cls._plain(text) or cls(text)  # type: ignore[arg-type]  # the library's annotation is wrong
        except (TokenError, OSError, OverflowError, ValueError):
            # The latter three: `exp` may be a number that is no date, and what was signed no JSON.
            raise invalid_token() from None

    @classmethod
    def _plain(cls, text: str) -> Self | None:
        """A token that is good and of just our form, made around the library's `__init__`; None for any other."""
        claims = _backend.plainly_signed(text)
        if type(claims) is not dict:
            return None
        token = cls.__new__(cls)
        token.payload = claims
        token.verify_own()
        is_plainly_good = (
            claims["iat"] <= time.time() < claims["exp"]
            and "nbf" not in claims
            and (claims.get("iss"), claims.get("aud")) == (_backend.issuer, _backend.audience)
        )
        return token if is_plainly_good else None

    def get_token_backend(self) -> TokenBackend:
        return _backend

    def verify(self) -> None:
        self.verify_own()
        super().verify()

    def verify_own(self) -> None:
        """What the library does not ask: the form of each claim, and of which type the token is."""
        claims = self.payload
        if tuple(map(type, map(claims.get, CLAIMS))) != _KINDS or claims["token_type"] != self.token_type:
            raise TokenError("Token lacks a claim, or has it in another form")
        self.session_id = claims["sid"]
        if not _SESSION_ID.fullmatch(self.session_id):
            raise TokenError("Token names no session")
        # An error where it is no date.
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


def pair_of(session: LoginSession) -> Pair:
    return Pair(AccessToken.of(session), RefreshToken.of(session))


def digest_of(token: str) -> bytes:
    """What is kept of a refresh token. Its signature is random enough for a plain digest to keep it secret."""
    return hashlib.sha256(token.encode()).digest()
