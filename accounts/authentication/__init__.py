"""Who is calling: the one DRF authentication class, over one credential per module."""

from types import ModuleType

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.authentication import api_key, basic, bearer, session
from config.api.exceptions import CHALLENGE
from config.api.principal import Principal
from config.http.errors import DomainError, ErrorCode
from config.http.headers import split_credentials, split_values
from config.http.request_state import get_state
from users.models import User


class PrincipalAuthentication(BaseAuthentication):
    """Resolves the one credential of a request to a user and scopes.

    The session cookie is looked at only where the request carries no explicit credential, so that a bad one never
    falls back to it.
    """

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        keys = [*split_values(request.META.get("HTTP_X_API_KEY")), *get_state(request.META).secret_parameters]
        presented: list[tuple[ModuleType, str]] = [(api_key, key) for key in keys]
        headers = split_credentials(request.META.get("HTTP_AUTHORIZATION"), ("bearer", "basic"))
        presented += [(bearer if header.lower().startswith("bearer ") else basic, header) for header in headers]
        if len(presented) > 1:
            raise DomainError(ErrorCode.CREDENTIAL_CONFLICT)
        if presented:
            ((kind, value),) = presented
            principal = kind.resolve(value, request)
        else:
            principal = session.resolve(request)
        return principal and (principal.user, principal)

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE
