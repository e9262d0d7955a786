"""The grants and scopes of the authorization server, and the translation of requests for oauthlib."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.scopes import BaseScopes
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.endpoints import AuthorizationEndpoint, RevocationEndpoint, TokenEndpoint
from oauthlib.oauth2.rfc6749.grant_types import AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256
from oauthlib.oauth2.rfc6749.request_validator import RequestValidator
from oauthlib.oauth2.rfc6749.tokens import BearerToken

from accounts.models import Application, get_digest
from config.api.principal import SCOPE_TEXTS

# RFC 7636, section 4.2: 32 bytes in base64url.
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


def _validate_code_challenge(request: Request) -> dict[str, object]:
    if request.code_challenge is not None and not _CHALLENGE.fullmatch(request.code_challenge):
        raise errors.InvalidRequestError("The code_challenge is not one of S256.", request=request)
    return {}


class S256CodeGrant(AuthorizationCodeGrant):
    # Refuses "plain" in the authorization request; the toolkit's own check comes after the user's consent.
    _code_challenge_methods = {"S256": code_challenge_method_s256}


class Server(AuthorizationEndpoint, TokenEndpoint, RevocationEndpoint):
    """Authorization code, client credentials and refresh. oauthlib's server has the grants that RFC 9700 forbids, too.

    Args:
        request_validator: the Validator of accounts.oauth.
        token_expires_in: the lifetime of an access token, in seconds.
    """

    def __init__(self, request_validator: RequestValidator, token_expires_in: int, **options: object) -> None:
        bearer = BearerToken(request_validator, expires_in=token_expires_in)
        code = S256CodeGrant(request_validator, pre_auth=[_validate_code_challenge])
        AuthorizationEndpoint.__init__(self, "code", bearer, {"code": code})
        grants = {
            "authorization_code": code,
            "client_credentials": ClientCredentialsGrant(request_validator),
            "refresh_token": RefreshTokenGrant(request_validator),
        }
        TokenEndpoint.__init__(self, "authorization_code", bearer, grants)
        RevocationEndpoint.__init__(self, request_validator)


class Scopes(BaseScopes):
    """The service's scopes. An application may request those that it is allowed, and gets none by default."""

    def get_all_scopes(self) -> Mapping[str, str]:
        return SCOPE_TEXTS

    def get_available_scopes(
        self, application: Application | None = None, request: Request | None = None, *args: object, **kwargs: object
    ) -> Iterable[str]:
        # An application keeps scopes that the service had once, without EVENTS for one.
        return [scope for scope in SCOPE_TEXTS if application is None or scope in application.allowed_scopes]

    def get_default_scopes(self, *args: object, **kwargs: object) -> Iterable[str]:
        return ()


class Core(OAuthLibCore):
    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        """The URL that Django parsed, re-encoded: oauthlib raises ValueError on `%ZZ` and on `&&`."""
        return f"{request.path}?{urlencode(_parse_parameters(request.GET))}"

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        # The database has the digest of a code only.
        parameters = _parse_parameters(request.POST)
        return [(name, get_digest(value) if name == "code" else value) for name, value in parameters]

    def get_authenticated_client(self, request: HttpRequest) -> Application | None:
        """The client whose secret the request contains; the toolkit's method returns only whether there is one."""
        oauth_request = Request(*self._extract_params(request))
        is_authenticated = self.server.request_validator.authenticate_client(oauth_request)
        return oauth_request.client if is_authenticated else None


def _parse_parameters(parameters: QueryDict) -> list[tuple[str, str]]:
    """The parameters with a value; one without is treated as omitted (RFC 6749, sections 3.1 and 3.2).

    `resource` (RFC 8707) is not supported, and so ignored.

    Raises:
        errors.InvalidRequestFatalError: one is repeated, or contains a NUL, which PostgreSQL cannot compare.
    """
    supported = [(name, values) for name, values in parameters.lists() if name != "resource"]
    for name, values in supported:
        if len(values) > 1:
            raise errors.InvalidRequestFatalError("A parameter is repeated.")
        if "\0" in name + values[0]:
            raise errors.InvalidRequestFatalError("A parameter contains a NUL character.")
    return [(name, values[0]) for name, values in supported if values[0]]
