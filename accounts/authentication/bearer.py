"""`Authorization: Bearer <token>` (RFC 6750): a JWT from login or an OAuth access token, told apart by shape."""

from rest_framework.request import Request

from accounts import logins
from accounts.authentication import oauth
from accounts.tokens import AccessToken
from config.api.principal import ALL_SCOPES, Principal

# RFC 7515, section 3.1: header, payload and signature. An OAuth token of ours has no dot.
JWT_DOTS = 2


def resolve(header: str, request: Request) -> Principal:
    token = header.partition(" ")[2].strip()
    if token.count(".") != JWT_DOTS:
        return oauth.resolve(token, request)
    access = AccessToken.parse(token)
    return Principal(logins.resolve(access, request), ALL_SCOPES, "jwt", access.expires_at)
