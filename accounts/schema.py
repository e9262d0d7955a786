"""The credentials as OpenAPI's security schemes, and the OAuth endpoints, whose forms and bodies are OAuth's own."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.permissions import SAFE_METHODS

from accounts.permissions import APIKeyPermission
from config.api.principal import SCOPE_TEXTS, SCOPES
from config.api.schema import headers, parameters
from config.api.schema.fields import TOKEN, closed, integer, text

Described = dict[str, Any]


class PrincipalScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.PrincipalAuthentication"
    name = ["apiKey", "apiKeyInQuery", "bearer", "basic", "oauth2"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Any one of them, not all of them; of what only the password's owner may do, those made from the password."""
        names: Sequence[str] = self.name
        if APIKeyPermission in auto_schema.view.permission_classes and auto_schema.method not in SAFE_METHODS:
            names = ("bearer", "basic")
        scope = auto_schema.view.required_scope(auto_schema.method)
        return [{name: [scope] if scope else []} for name in names]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        token = {"tokenUrl": f"{settings.PUBLIC_URL}/oauth/token", "scopes": SCOPE_TEXTS}
        code = token | {
            "authorizationUrl": f"{settings.PUBLIC_URL}/oauth/authorize",
            "refreshUrl": f"{settings.PUBLIC_URL}/oauth/token",
        }
        # RFC8725 is what a JWT is checked by: one algorithm, issuer, audience and purpose.
        jwt = "An access token from login, a JWT checked as RFC8725 asks. It has all scopes."
        return [
            {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "A key, with its own scopes."},
            {"type": "apiKey", "in": "query", "name": "api_key", "description": "The same key, where no header is."},
            {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": jwt},
            {"type": "http", "scheme": "basic", "description": "Email and password. It has all scopes."},
            {
                "type": "oauth2",
                "flows": {"authorizationCode": code, "clientCredentials": token},
                "description": "An access token with the scopes that were granted, checked as RFC8725 asks of a JWT.",
            },
        ]


# --- The OAuth endpoints, which are no views of DRF

_TOKEN = text(4096, TOKEN)
_SCOPE = text(256, "^[a-z:]+( [a-z:]+)*$")
_URL = text(2048, "^https?://[!-~]+$", format="uri")
_CLIENT: Described = {"client_id": text(100, TOKEN), "client_secret": _TOKEN}
_HINT: Described = {"token_type_hint": {"type": "string", "enum": ["access_token", "refresh_token"]}}
_FAILURES = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_token_type",
    "temporarily_unavailable",
    "server_error",
]
_SCHEMAS: Described = {
    "OAuthError": closed(
        {"error": {"type": "string", "enum": _FAILURES}, "error_description": text(1024)},
        optional=("error_description",),
        description="RFC 6749, section 5.2.",
    ),
    "OAuthTokens": closed(
        {
            "access_token": _TOKEN,
            "expires_in": integer(0, 86_400),
            "token_type": {"const": "Bearer"},
            "scope": _SCOPE,
            "refresh_token": _TOKEN,
        },
        optional=("refresh_token",),
        description="RFC 6749, section 5.1.",
    ),
    "OAuthIntrospection": closed(
        {
            "active": {"type": "boolean"},
            "iss": _URL,
            "client_id": text(100, TOKEN),
            "sub": text(19, "^[0-9]+$"),
            "scope": text(256, "^[a-z: ]*$"),
            "token_type": {"const": "Bearer"},
            "iat": integer(),
            "exp": integer(),
        },
        optional=("iss", "client_id", "sub", "scope", "token_type", "iat", "exp"),
        description="RFC 7662, section 2.2: `active` alone for a token that is not, or is another client's.",
    ),
    "OAuthTokenRequest": {
        "type": "object",
        "properties": {
            "grant_type": {"type": "string", "enum": ["authorization_code", "client_credentials", "refresh_token"]},
            "code": _TOKEN,
            "redirect_uri": _URL,
            "code_verifier": text(128, "^[A-Za-z0-9._~-]{43,128}$", minLength=43),
            "refresh_token": _TOKEN,
            "scope": _SCOPE,
            **_CLIENT,
        },
        "required": ["grant_type"],
    },
    "OAuthTokenReference": {
        "type": "object",
        "properties": {"token": _TOKEN, **_HINT, **_CLIENT},
        "required": ["token"],
    },
}


def _words(*, longest: int = 64) -> Described:
    return {"type": "array", "items": text(longest, TOKEN), "maxItems": 16}


def _metadata() -> Described:
    addresses = ("issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint", "introspection_endpoint")
    lists = (
        "response_types_supported",
        "response_modes_supported",
        "grant_types_supported",
        "code_challenge_methods_supported",
        "token_endpoint_auth_methods_supported",
        "revocation_endpoint_auth_methods_supported",
        "introspection_endpoint_auth_methods_supported",
    )
    return closed(
        {
            **dict.fromkeys(addresses, _URL),
            "scopes_supported": {
                "type": "array",
                "items": {"type": "string", "enum": list(SCOPES)},
                "maxItems": len(SCOPES),
            },
            **dict.fromkeys(lists, _words()),
            "authorization_response_iss_parameter_supported": {"const": True},
            "service_documentation": _URL,
        },
        description="RFC 8414, section 2.",
    )


def _answer(status: int, schema: str | None, **more: Any) -> Described:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}, **more}} if schema else None
    told = headers.of_service() | headers.of_quota() | (headers.of_error(None, status, ()) if status >= 400 else {})
    return {"description": f"{HTTPStatus(status).phrase}.", "headers": told} | ({"content": content} if content else {})


def _operation(name: str, summary: str, success: Described, failures: Sequence[int], **more: Any) -> Described:
    answers = {"200": success} | {str(status): _answer(status, "OAuthError") for status in failures}
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["oauth"],
        "parameters": parameters.refer("X-Request-Id"),
        "responses": answers,
        **more,
    }


def _form(schema: str, example: Mapping[str, str]) -> Described:
    media = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": dict(example)}
    return {"required": True, "content": {"application/x-www-form-urlencoded": media}}


# Of an endpoint that takes a client's form; without a secret in Authorization it stands in the form.
_FORM_FAILURES = (400, 401, 413, 415, 429, 500, 503)
_CLIENTS: list[dict[str, list[str]]] = [{"client": []}, {}]


def _paths() -> Described:
    asked = {"grant_type": "client_credentials", "scope": "users:read"}
    return {
        "/oauth/token": {
            "post": _operation(
                "oauth_token",
                "Exchange a grant for tokens",
                _answer(200, "OAuthTokens"),
                _FORM_FAILURES,
                description="RFC 6749, section 3.2; the code with PKCE (RFC 7636).",
                requestBody=_form("OAuthTokenRequest", asked),
                security=_CLIENTS,
            )
        },
        "/oauth/revoke": {
            "post": _operation(
                "oauth_revoke",
                "Revoke a token",
                _answer(200, None),
                _FORM_FAILURES,
                description="RFC 7009. Both tokens of the pair end; 200 for an unknown token, too.",
                requestBody=_form("OAuthTokenReference", {"token": "a-token"}),
                security=_CLIENTS,
            )
        },
        "/oauth/introspect": {
            "post": _operation(
                "oauth_introspect",
                "Ask about a token",
                _answer(200, "OAuthIntrospection", example={"active": False}),
                _FORM_FAILURES,
                description="RFC 7662, of the asking client's own tokens.",
                requestBody=_form("OAuthTokenReference", {"token": "a-token"}),
                security=_CLIENTS,
            )
        },
        "/.well-known/oauth-authorization-server": {
            "get": _operation(
                "oauth_metadata",
                "Read where everything of OAuth is",
                _answer(200, "OAuthMetadata"),
                (400, 413, 429, 500, 503),
                description="RFC 8414.",
                security=[],
            )
        },
    }


def with_oauth(result: Described, generator: Any, **options: Any) -> Described:
    """drf-spectacular's hook: adds what programs call of OAuth, and the credentials that are no user's."""
    result["paths"].update(_paths())
    result["components"]["schemas"].update(_SCHEMAS | {"OAuthMetadata": _metadata()})
    result["components"]["securitySchemes"] |= {
        "client": {"type": "http", "scheme": "basic", "description": "An application's `client_id` and secret."},
        "metricsToken": {"type": "http", "scheme": "bearer", "description": "The setting METRICS_TOKEN (RFC8725)."},
    }
    return result
