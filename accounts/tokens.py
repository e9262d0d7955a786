"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenBackendError, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from config.http.errors import invalid_token
from config.http.signing_keys import SigningKey, parse_signing_key

# Of ours none is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
CLAIMS = {"exp": int, "iat": int, "jti": str, "sid": str, "sub": str, "token_type": str}
_TYPES = tuple(CLAIMS.values())
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Backend(TokenBackend):
    """simplejwt's backend for several keys: the first one signs, and all verify.

    So a key is changed without ending a login. The new key comes first, and the old one stays behind it until the last
    token that it signed has expired.
    """

    def __init__(self, key: SigningKey, *fallbacks: SigningKey, audience: str, issuer: str) -> None:
        super().__init__(key.algorithm, audience=audience, issuer=issuer)
        self.key = key
        self._fallbacks = [Backend(each, audience=audience, issuer=issuer) for each in fallbacks]

    @property
    def prepared_signing_key(self) -> bytes | Ed25519PrivateKey:
        return self.key.signing

    def get_verifying_key(self, token: object) -> bytes | Ed25519PublicKey:
        return self.key.verifying

    def get_public_keys(self) -> list[Mapping[str, str]]:
        """The public keys (RFC 7517) that verify tokens; none of a secret."""
        return [jwk for each in (self, *self._fallbacks) if (jwk := each.key.public_jwk)]

    def encode(self, payload: dict[str, object]) -> str:
        claims = payload | {"aud": self.audience, "iss": self.issuer}
        return jwt.encode(claims, self.key.signing, self.algorithm, headers={"kid": self.key.id})

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        """The claims of a token that one of the keys signed, by its own algorithm.

        Raises:
            TokenBackendError: any other token.
        """
        # The library skips what is not of the alphabet, so that one token could be spelt in many ways.
        if not _SHAPE.fullmatch(token):
            raise TokenBackendError("Token is of another form")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except jwt.InvalidTokenError:
            raise TokenBackendError("Token has no header") from None
        refusal: Exception = TokenBackendError("Token names no key of this service")
        for backend in (self, *self._fallbacks):
            # Tokens of releases before there were several keys name none.
            if key_id in {backend.key.id, None}:
                try:
                    return super(Backend, backend).decode(token, verify)
                except TokenBackendError as error:
                    refusal = error
        raise refusal


class SessionToken(Token):
    """A token that names its session (`sid`) and user (`sub`).

    Issuer, audience, signature, algorithm and the times are checked by the library.
    """

    backend = Backend(
        *map(parse_signing_key, [settings.JWT_SIGNING_KEY, *settings.JWT_SIGNING_KEY_FALLBACKS]),
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
    """The stored form of a refresh token. Its signature is random enough for a plain digest to keep it secret."""
    return hashlib.sha256(token.encode()).digest()
