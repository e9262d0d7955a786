"""The OAuth endpoints for programs: bodies, errors and headers are OAuth's own (RFC 6749, 7009, 7662 and 8414)."""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.models import AbstractAccessToken, refresh_token_expire_timedelta
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.oauth2.rfc6749 import errors

from accounts import tokens
from accounts.authentication import find_usable_token, get_acting_user, get_scopes
from accounts.models import Application, get_digest, living_refresh_tokens
from config.api.exceptions import answer_to
from config.api.limits import quotas
from config.api.principal import SCOPES
from config.http.media_types import UTF_8
from config.http.request_limits import MAX_SHORT_BODY
from users.models import User

# How long others may keep the key set: a new key is published for as long before it signs.
KEY_SET_SECONDS = 300
FORM = "application/x-www-form-urlencoded"


def build_error(
    error: str, description: str, status: int = 400, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """An error response of OAuth (RFC 6749, section 5.2).

    Args:
        error: the error code.
        description: one sentence for the developer of the client.
        status: the status of the response.
        headers: its own headers.

    Returns:
        The response.
    """
    return JsonResponse({"error": error, "error_description": description}, status=status, headers=headers)


@method_decorator(csrf_exempt, name="dispatch")
class Endpoint(OAuthLibMixin, View):
    """An endpoint whose responses, errors too, are JSON, not to be cached unless they say so. It reads no session."""

    http_method_names: Sequence[str] = ("get", "head", "options")
    max_body = MAX_SHORT_BODY

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            quotas.consume_quota(request, None)
            response = super().dispatch(request)
        except errors.OAuth2Error as error:
            response = build_error(error.error, error.description, error.status_code)
        except SuspiciousOperation as error:
            # Django would log a body that is too long or unreadable as an error of the service.
            response = answer_to(request, error)
        if response.status_code == 401:
            # RFC 6749, section 5.2: the scheme by which a client authenticates. oauthlib names Bearer.
            response["WWW-Authenticate"] = 'Basic realm="users", charset="UTF-8"'
        response.setdefault("Cache-Control", "no-store")
        return response

    def http_method_not_allowed(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        allowed = {"Allow": self.options(request).headers["Allow"]}
        message = "This endpoint does not support the method. See the Allow header."
        return build_error("invalid_request", message, 405, allowed)


class ClientEndpoint(Endpoint):
    """An endpoint to which clients post forms."""

    http_method_names = ("post", "options")

    def post(self, request: HttpRequest) -> HttpResponse:
        if request.body and not _is_form(request):
            return build_error("invalid_request", f"The body must be {FORM}, in UTF-8.", 415)
        return self.handle_form(request)

    def handle_form(self, request: HttpRequest) -> HttpResponse:
        raise NotImplementedError


def _is_form(request: HttpRequest) -> bool:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    return request.content_type == FORM and charset in UTF_8 and "HTTP_CONTENT_ENCODING" not in request.META


class TokenView(ClientEndpoint):
    """The token endpoint (RFC 6749, section 3.2)."""

    def handle_form(self, request: HttpRequest) -> HttpResponse:
        if not request.POST.get("grant_type"):
            raise errors.InvalidRequestError("The parameter grant_type is missing.")
        _, headers, body, status = self.create_token_response(request)
        return HttpResponse(body, status=status, headers={"Content-Type": "application/json", **headers})


class RevokeView(ClientEndpoint):
    """Token revocation (RFC 7009)."""

    def handle_form(self, request: HttpRequest) -> HttpResponse:
        _, headers, body, status = self.create_revocation_response(request)
        return HttpResponse(body, status=status, headers={"Content-Type": "application/json", **headers})


class IntrospectView(ClientEndpoint):
    """Token introspection (RFC 7662) for the client's own tokens; the toolkit's view describes any token."""

    def handle_form(self, request: HttpRequest) -> HttpResponse:
        client = self.get_oauthlib_core().get_authenticated_client(request)
        if client is None:
            raise errors.InvalidClientError
        token = request.POST.get("token")
        if not token:
            raise errors.InvalidRequestError("The parameter token is missing.")
        state = _describe_access_token(token, client) or _describe_refresh_token(token, client)
        return JsonResponse(state or {"active": False})


def _describe_access_token(token: str, client: Application) -> dict[str, object] | None:
    row = find_usable_token(token)
    if row is None or row.application_id != client.pk:
        return None
    expires_at = int(row.expires.timestamp())
    return _describe_token(row, client, get_acting_user(row)) | {"token_type": "Bearer", "exp": expires_at}


def _describe_refresh_token(token: str, client: Application) -> dict[str, object] | None:
    own = living_refresh_tokens(timezone.now()).filter(application=client)
    row = own.select_related("access_token__application", "user").filter(token_checksum=get_digest(token)).first()
    if row is None or not row.user.is_active:
        return None
    expires_at = row.access_token.expires + refresh_token_expire_timedelta()
    return _describe_token(row.access_token, client, row.user) | {"exp": int(expires_at.timestamp())}


def _describe_token(row: AbstractAccessToken, client: Application, user: User) -> dict[str, object]:
    return {
        "active": True,
        "iss": oauth2_settings.OIDC_ISS_ENDPOINT,
        "client_id": client.client_id,
        "sub": str(user.pk),
        "scope": " ".join(sorted(get_scopes(row))),
        "iat": int(row.created.timestamp()),
    }


def build_metadata() -> dict[str, object]:
    """The metadata of the server (RFC 8414). Its URLs begin with PUBLIC_URL, whatever Host the request names."""
    with_secret = ["client_secret_basic", "client_secret_post"]
    return {
        "issuer": oauth2_settings.OIDC_ISS_ENDPOINT,
        "authorization_endpoint": _build_url("oauth-authorize"),
        "token_endpoint": _build_url("oauth-token"),
        "revocation_endpoint": _build_url("oauth-revoke"),
        "introspection_endpoint": _build_url("oauth-introspect"),
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": [*with_secret, "none"],
        "revocation_endpoint_auth_methods_supported": [*with_secret, "none"],
        "introspection_endpoint_auth_methods_supported": with_secret,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": _build_url("documentation"),
    }


class MetadataView(Endpoint):
    def get(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse(build_metadata())


class KeySetView(Endpoint):
    """The public keys of the access tokens of logins (RFC 7517): none where a secret signs them."""

    def get(self, request: HttpRequest) -> HttpResponse:
        cached = {"Cache-Control": f"public, max-age={KEY_SET_SECONDS}"}
        return JsonResponse({"keys": tokens.backend.get_public_keys()}, headers=cached)


def _build_url(name: str) -> str:
    return f"{settings.PUBLIC_URL}{reverse(name)}"
