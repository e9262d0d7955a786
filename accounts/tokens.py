"""The tokens of a login (RFC 7519): how they are made, and what must be true of one that is presented."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Self

import jwt
from django.conf import settings
from jwt.algorithms import OKPAlgorithm
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenBackendError, TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import Token

from accounts.models import LoginSession
from accounts.signing_keys import parse_signing_key
from config.http.errors import Detail, invalid, invalid_token

# None of our tokens is half as long. A longer one is not worth decoding.
MAX_CHARACTERS = 4096
# The clock of the machine that issued a token may be ahead. It prolongs nothing: `exp` has no leeway (Token.check_exp).
CLOCK_LEEWAY = timedelta(seconds=5)
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Backend(TokenBackend):
    """simplejwt's backend for several keys: the first one signs, and all verify.

    So a key is changed without ending a login. The new key comes first, and the old one stays behind it until the last
    token that it signed has expired.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = [parse_signing_key(key) for key in keys]
        algorithm = self.keys[0].algorithm_name
        super().__init__(algorithm, audience=api_settings.AUDIENCE, issuer=api_settings.ISSUER)

    def get_public_keys(self) -> list[dict[str, str]]:
        """The public keys (RFC 7517) that verify tokens; none of a secret."""
        return [
            OKPAlgorithm.to_jwk(key.key.public_key(), as_dict=True)
            | {"kid": key.key_id, "alg": key.algorithm_name, "use": "sig"}
            for key in self.keys
            if key.key_type == "OKP"
        ]

    def encode(self, payload: dict[str, Any]) -> str:
        claims = payload | {"aud": self.audience, "iss": self.issuer}
        return jwt.encode(claims, self.keys[0], headers={"kid": self.keys[0].key_id})

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        """The claims of a token that one of the keys signed, by its own algorithm.

        Args:
            token: its text.
            verify: whether its times are checked; signature, audience and issuer always are.

        Raises:
            TokenBackendError: any other token.
        """
        # The library skips what is not of the alphabet, so that one token could be spelt in many ways.
        if len(token) > MAX_CHARACTERS or not _SHAPE.fullmatch(token):
            raise TokenBackendError("Token has another form")
        times = dict.fromkeys(("verify_exp", "verify_iat", "verify_nbf"), verify)
        rules: dict[str, Any] = {
            "audience": self.audience,
            "issuer": self.issuer,
            "leeway": CLOCK_LEEWAY,
            "options": {"require": ["iat", "sub"], **times},
        }
        refusal: Exception | None = None
        for key in self.keys:
            try:
                return dict(jwt.decode(token, key, **rules))
            except jwt.InvalidTokenError as error:
                refusal = error
        raise TokenBackendError("Token is of no key of this service") from refusal


backend = Backend(settings.JWT_SIGNING_KEY, *settings.JWT_SIGNING_KEY_FALLBACKS)
# The others: a claim is missing or of another type, `exp` is a number that is no date, what was signed no JSON.
_UNUSABLE = (TokenError, LookupError, OSError, OverflowError, TypeError, ValueError)


class SessionToken(Token):
    """A token that names its session (`sid`) and user (`sub`)."""

    session_id: str
    expires_at: datetime

    @classmethod
    def for_session(cls, session: LoginSession) -> Self:
        """A new token of a session."""
        token = cls()
        token["sid"], token["sub"] = str(session.pk), str(session.user_id)
        token.read_claims()
        return token

    @classmethod
    def parse(cls, text: str) -> Self:
        """The token that a client presents.

        Raises:
            DomainError: INVALID_TOKEN, for whatever is not an unexpired token of this service and of this type.
        """
        kind: Any = cls
        try:
            token: Self = _verify(kind, backend, text)
        except _UNUSABLE:
            raise invalid_token() from None
        if token.expires_at <= datetime.now(UTC):
            raise invalid_token()
        return token

    def get_token_backend(self) -> TokenBackend:
        return backend

    def read_claims(self) -> None:
        """Reads the session, and the end of the token.

        Raises:
            LookupError, OSError, OverflowError, TypeError, ValueError: a claim is missing, or of another form.
        """
        self.session_id = self.payload["sid"]
        if not _SESSION_ID.fullmatch(self.session_id):
            raise ValueError("The token names no session.")
        self.expires_at = datetime.fromtimestamp(self.payload["exp"], UTC)


# As secret as the keys. A token is sent many times; once it is verified, only its expiry can change.
@lru_cache(maxsize=1024)
def _verify(cls: Any, backend: Backend, text: str) -> Any:
    token = cls(text)
    token.read_claims()
    return token


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
        try:
            token = cls(text, verify=False)  # type: ignore[arg-type]  # the library's annotation is wrong
            token.read_claims()
        except _UNUSABLE:
            return None
        if token["token_type"] != cls.token_type:
            message = "This is not a refresh token. Send the refresh token of the same pair."
            raise invalid(Detail("refresh_token", message))
        return token


class Pair(NamedTuple):
    """The tokens that a login issues, and that each refresh replaces."""

    access: AccessToken
    refresh: RefreshToken


def build_pair(session: LoginSession) -> Pair:
    """A new pair of a session."""
    return Pair(AccessToken.for_session(session), RefreshToken.for_session(session))
