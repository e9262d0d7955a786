"""`Authorization: Bearer <token>` (RFC 6750): a JWT from login or an OAuth access token, told apart by shape."""

from rest_framework.request import Request

from accounts.authentication import oauth
from accounts.authentication.headers import parts
from config.api.principal import Principal


def presented(request: Request) -> list[str]:
    return [part for part in parts(request.META.get("HTTP_AUTHORIZATION")) if part.lower().startswith("bearer ")]


def resolve(header: str, request: Request) -> Principal:
    return oauth.resolve(header.partition(" ")[2].strip(), request)
