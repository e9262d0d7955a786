"""Who is calling: the one DRF authentication class, over one credential per module."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.authentication import api_key, basic, bearer, session
from accounts.authentication.headers import parts
from config.api.exceptions import CHALLENGE
from config.api.principal import Principal
from config.http.errors import DomainError, ErrorCode


class PrincipalAuthentication(BaseAuthentication):
    """Resolves the one credential of a request to a user and scopes.

    The session cookie is looked at only where the request carries no explicit credential, so that a bad one never
    falls back to it.
    """

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        presented: list[tuple[Any, str]] = [(api_key, key) for key in api_key.presented(request)]
        authorization = parts(request.META.get("HTTP_AUTHORIZATION"))
        presented += [(bearer if part.lower().startswith("bearer ") else basic, part) for part in authorization]
        if len(presented) > 1:
            raise DomainError(
                ErrorCode.CREDENTIAL_CONFLICT, "The request carries more than one credential; send exactly one."
            )
        if presented:
            ((kind, value),) = presented
            principal = kind.resolve(value, request)
        else:
            principal = session.resolve(request)
        return principal and (principal.user, principal)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE
