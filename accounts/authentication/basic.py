"""`Authorization: Basic <base64 of email:password>` (RFC 7617, in UTF-8)."""

from base64 import b64decode

from rest_framework.request import Request

from accounts.passwords import check_and_remember, prove
from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError, ErrorCode
from config.http.headers import OPTIONAL_WHITESPACE


def resolve(header: str, request: Request) -> Principal:
    """The principal of an email and its password, with every scope.

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
