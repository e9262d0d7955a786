"""`Authorization: Basic <base64 of email:password>` (RFC 7617, in UTF-8)."""

from base64 import b64decode

from django.contrib.auth.hashers import check_password, make_password
from rest_framework.request import Request

from accounts.authentication.headers import parts
from config.api.errors import DomainError, ErrorCode
from config.api.principal import ALL_SCOPES, Principal
from users.models import User


def presented(request: Request) -> list[str]:
    header = parts(request.META.get("HTTP_AUTHORIZATION"))
    return [part for part in header if not part.lower().startswith("bearer ")]


def resolve(header: str, request: Request) -> Principal:
    scheme, _, pair = header.strip().partition(" ")
    if scheme.lower() != "basic":
        raise DomainError(ErrorCode.INVALID_TOKEN, "The Authorization header is of no scheme known here.")
    try:
        email, _, password = b64decode(pair.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise _refusal() from None
    user = User.objects.with_email(email).first()
    # The password is hashed whoever is asked for, so that the time tells nothing about which emails exist.
    matches = check_password(password, user.password) if user else not make_password(password)
    if user is None or not matches or not user.is_active:
        raise _refusal()
    return Principal(user, ALL_SCOPES, "basic")


def _refusal() -> DomainError:
    return DomainError(ErrorCode.INVALID_CREDENTIALS, "The email or the password is wrong.")
