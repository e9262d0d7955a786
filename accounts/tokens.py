"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenBackendError, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from accounts.signing_keys import SigningKey, parse_signing_key
from config.api.backends import get_backend
from config.http.errors import Detail, invalid, invalid_token

# Of ours none is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
# The clock of the machine that issued a token may be ahead. It prolongs nothing: `exp` has no leeway (Token.check_exp).
CLOCK_LEEWAY = timedelta(seconds=5)
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

    def get_public_keys(self) -> list[Mapping[str, str]]:
        """The public keys (RFC 7517) that verify tokens; none of a secret."""
        return [jwk for each in (self, *self._fallbacks) if (jwk := each.key.public_jwk)]

    def encode(self, payload: dict[str, object]) -> str:
        claims = payload | {"aud": self.audience, "iss": self.issuer}
        return jwt.encode(claims, self.key.signing, self.algorithm, headers={"kid": self.key.id})

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        """The claims of a token that one of the keys signed, by its own algorithm.

        Args:
            token: its text.
            verify: whether its times are checked; signature, audience and issuer always are.

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
                    return backend._decode(token, verify_times=verify)
                except jwt.InvalidTokenError as error:
                    refusal = TokenBackendError(str(error))
        raise refusal

    def _decode(self, token: str, *, verify_times: bool) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            self.key.verifying,
            [self.algorithm],
            audience=self.audience,
            issuer=self.issuer,
            leeway=CLOCK_LEEWAY,
            options={"verify_exp": verify_times, "verify_iat": verify_times, "verify_nbf": verify_times},
        )
        return claims


# The latter three: `exp` may be a number that is no date, and what was signed no JSON.
_UNUSABLE = (TokenError, OSError, OverflowError, ValueError)


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
            token: Self = get_backend(settings.CREDENTIAL_BACKEND).parse_token(cls, text)
        except _UNUSABLE:
            raise invalid_token() from None
        return token

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

    @classmethod
    def parse_for_log_out(cls, text: str) -> Self | None:
        """The token whose session is to end, whatever its times: no clock keeps a session alive.

        Returns:
            None for a token that this service did not sign.

        Raises:
            DomainError: VALIDATION_ERROR on `refresh_token` for an access token.
        """
        if len(text) > MAX_CHARACTERS or not text.isascii():
            return None
        try:
            token = cls(text, verify=False)  # type: ignore[arg-type]  # the library's annotation is wrong
        except _UNUSABLE:
            return None
        try:
            token.verify_own_claims()
        except _UNUSABLE:
            message = "This is not a refresh token. Send the refresh token of the same pair."
            raise invalid(Detail("refresh_token", message)) from None
        return token


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
