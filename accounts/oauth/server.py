"""Which grants there are, and how a request reaches oauthlib."""

import re
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.endpoints import AuthorizationEndpoint, RevocationEndpoint, TokenEndpoint
from oauthlib.oauth2.rfc6749.grant_types import AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256
from oauthlib.oauth2.rfc6749.tokens import BearerToken

from accounts.models import Application, digest_of

# RFC 7636, section 4.2: 32 bytes in base64url.
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


def _check_challenge(request: Any) -> dict[str, Any]:
    if request.code_challenge is not None and not _CHALLENGE.fullmatch(request.code_challenge):
        raise errors.InvalidRequestError("The code_challenge is not one of S256.", request=request)
    return {}


class S256CodeGrant(AuthorizationCodeGrant):
    # "plain" is refused when it is asked for; the toolkit's gate would only do so after the user's consent.
    _code_challenge_methods = {"S256": code_challenge_method_s256}


class Server(AuthorizationEndpoint, TokenEndpoint, RevocationEndpoint):
    """Authorization code, client credentials and refresh; oauthlib's own has all the grants that RFC 9700 warns of."""

    def __init__(self, request_validator: Any, token_expires_in: int, **options: Any) -> None:
        bearer = BearerToken(request_validator, expires_in=token_expires_in)
        code = S256CodeGrant(request_validator, pre_auth=[_check_challenge])
        AuthorizationEndpoint.__init__(self, "code", bearer, {"code": code})
        grants = {
            "authorization_code": code,
            "client_credentials": ClientCredentialsGrant(request_validator),
            "refresh_token": RefreshTokenGrant(request_validator),
        }
        TokenEndpoint.__init__(self, "authorization_code", bearer, grants)
        RevocationEndpoint.__init__(self, request_validator)


class Core(OAuthLibCore):
    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        """The address as Django has read it, written well-formed: oauthlib raises ValueError on `%ZZ` and on `&&`."""
        return f"{request.path}?{urlencode(_given(request.GET))}"

    def extract_headers(self, request: HttpRequest) -> dict[str, Any]:
        # For the audit trail, which is written where only oauthlib's request is at hand.
        return {**super().extract_headers(request), "REQUEST_ID": getattr(request, "request_id", "")}

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        # A code is looked up as it is kept: not in clear.
        return [(name, digest_of(value) if name == "code" else value) for name, value in _given(request.POST)]

    def authenticated_client(self, request: HttpRequest) -> Application | None:
        """The client that proves itself by its secret; the toolkit only tells that there is one."""
        oauth_request = Request(*self._extract_params(request))
        proven = self.server.request_validator.authenticate_client(oauth_request)
        return oauth_request.client if proven else None


def _given(parameters: QueryDict) -> list[tuple[str, str]]:
    """The parameters; one without a value is treated as omitted (RFC 6749, sections 3.1 and 3.2).

    `resource` (RFC 8707) is not offered, and like all that is not, ignored.

    Raises:
        errors.InvalidRequestFatalError: one is repeated, or holds a NUL, which PostgreSQL refuses to compare.
    """
    given = [(name, values) for name, values in parameters.lists() if name != "resource"]
    for name, values in given:
        if len(values) > 1:
            raise errors.InvalidRequestFatalError("A parameter is given more than once.")
        if "\0" in name + values[0]:
            raise errors.InvalidRequestFatalError("A parameter holds a NUL character.")
    return [(name, values[0]) for name, values in given if values[0]]
