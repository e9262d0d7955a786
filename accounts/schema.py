"""The credentials as OpenAPI's security schemes, and the OAuth endpoints, whose forms and bodies are OAuth's own."""

from collections.abc import Sequence

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from accounts.oauth.endpoints import FORM, build_metadata
from accounts.permissions import APIKeyPermission
from config.api.permissions import PasswordPermission
from config.api.principal import SCOPE_TEXTS, SCOPES
from config.api.schema import headers, parameters
from config.api.schema.fields import TOKEN, build_integer, build_object, build_string
from config.http.errors import get_phrase
from config.http.json import JSONObject

Security = list[dict[str, list[str]]]


class PrincipalScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.PrincipalAuthentication"
    name = ["apiKey", "apiKeyInQuery", "bearer", "basic", "oauth2"]

    def get_security_requirement(self, auto_schema: AutoSchema) -> Security:
        """Any one of the schemes; where the permission asks for it, any one that is derived from the password."""
        names: Sequence[str] = self.name
        permissions = auto_schema.view.permission_classes
        writes_keys = APIKeyPermission in permissions and auto_schema.method not in SAFE_METHODS
        if PasswordPermission in permissions or writes_keys:
            names = ("bearer", "basic")
        scope = auto_schema.view.required_scope(auto_schema.method)
        return [{name: [scope] if scope else []} for name in names]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[JSONObject]:
        token = {"tokenUrl": f"{settings.PUBLIC_URL}/oauth/token", "scopes": SCOPE_TEXTS}
        code = token | {
            "authorizationUrl": f"{settings.PUBLIC_URL}/oauth/authorize",
            "refreshUrl": f"{settings.PUBLIC_URL}/oauth/token",
        }
        jwt = "An access token from login, a JWT validated according to RFC8725. It has all scopes."
        return [
            {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key with its own scopes."},
            {
                "type": "apiKey",
                "in": "query",
                "name": "api_key",
                "description": "The key, for clients that cannot set headers.",
            },
            {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": jwt},
            {"type": "http", "scheme": "basic", "description": "Email address and password. All scopes."},
            {
                "type": "oauth2",
                "flows": {"authorizationCode": code, "clientCredentials": token},
                "description": "An opaque access token with the granted scopes.",
            },
        ]


# --- The OAuth endpoints, which are plain Django views

_TOKEN = build_string(4096, TOKEN)
_SCOPE = build_string(256, "^[a-z:]+( [a-z:]+)*$")
_URL = build_string(2048, "^https?://[!-~]+$", format="uri")
_CLIENT: JSONObject = {
    "client_id": build_string(100, TOKEN, description="The ID of the application."),
    "client_secret": {**_TOKEN, "description": "The secret of a confidential application."},
}
_HINT: JSONObject = {
    "token_type_hint": {"type": "string", "enum": ["access_token", "refresh_token"], "description": "Ignored."}
}
_ERRORS = [
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
_SCHEMAS: JSONObject = {
    "OAuthError": build_object(
        {"error": {"type": "string", "enum": _ERRORS}, "error_description": build_string(1024)},
        optional=("error_description",),
        description="RFC 6749, section 5.2.",
    ),
    "OAuthTokens": build_object(
        {
            "access_token": _TOKEN,
            "expires_in": build_integer(0, 86_400),
            "token_type": {"type": "string", "const": "Bearer"},
            "scope": _SCOPE,
            "refresh_token": _TOKEN,
        },
        optional=("refresh_token",),
        description="RFC 6749, section 5.1.",
    ),
    "OAuthIntrospection": build_object(
        {
            "active": {"type": "boolean"},
            "iss": _URL,
            "client_id": build_string(100, TOKEN),
            "sub": build_string(19, "^[0-9]+$"),
            "scope": build_string(256, "^[a-z: ]*$"),
            "token_type": {"type": "string", "const": "Bearer"},
            "iat": build_integer(),
            "exp": build_integer(),
        },
        required=["active"],
        description="RFC 7662, section 2.2. Only `active` if the token is inactive or belongs to another client.",
    ),
    "KeySet": build_object(
        {
            "keys": {
                "type": "array",
                "maxItems": 16,
                "items": build_object(
                    {
                        "kty": {"type": "string", "const": "OKP"},
                        "crv": {"type": "string", "const": "Ed25519"},
                        "x": build_string(43, TOKEN, minLength=43),
                        "kid": build_string(16, TOKEN, minLength=16),
                        "alg": {"type": "string", "const": "EdDSA"},
                        "use": {"type": "string", "const": "sig"},
                    },
                    description="RFC 8037, section 2.",
                ),
            }
        },
        description="RFC 7517, section 5.",
    ),
    "OAuthTokenRequest": build_object(
        {
            "grant_type": {
                "type": "string",
                "enum": ["authorization_code", "client_credentials", "refresh_token"],
                "description": "The grant type.",
            },
            "code": {**_TOKEN, "description": "The authorization code."},
            "redirect_uri": {**_URL, "description": "The redirect URI of the authorization request."},
            "code_verifier": build_string(128, "^[A-Za-z0-9._~-]{43,128}$", minLength=43, description="RFC 7636."),
            "refresh_token": {**_TOKEN, "description": "The refresh token."},
            "scope": {**_SCOPE, "description": "The scopes, separated by spaces."},
            **_CLIENT,
        },
        required=["grant_type"],
    ),
    "OAuthTokenReference": build_object(
        {"token": {**_TOKEN, "description": "The access or refresh token."}, **_HINT, **_CLIENT}, required=["token"]
    ),
}
_EXAMPLES: JSONObject = {
    "OAuthTokenRequest": {"grant_type": "client_credentials", "scope": "users:read"},
    "OAuthTokenReference": {"token": "a-token"},
    "OAuthIntrospection": {"active": False},
    "KeySet": {"keys": []},
}


def _build_metadata_schema() -> JSONObject:
    names = {"type": "array", "items": build_string(64, TOKEN), "maxItems": 16}
    scopes = {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}, "maxItems": len(SCOPES)}
    kinds = {str: _URL, list: names, bool: {"const": True}}
    members = {name: kinds[type(value)] for name, value in build_metadata().items()}
    return build_object({**members, "scopes_supported": scopes}, description="RFC 8414, section 2.")


def _build_response(status: int, schema: str | None) -> JSONObject:
    response: JSONObject = {
        "description": f"{get_phrase(status)}.",
        "headers": headers.COMMON | headers.QUOTA,
    }
    if status >= 400:
        response["headers"] |= headers.get_error_headers(None, status, ())
    if schema:
        media_type: JSONObject = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
        if schema in _EXAMPLES:
            media_type["example"] = _EXAMPLES[schema]
        response["content"] = {"application/json": media_type}
    return response


def _build_operation(name: str, text: str, schema: str | None, *, form: str = "") -> JSONObject:
    """The operation of an endpoint.

    Args:
        name: of the operation.
        text: its summary and its description, as in the `texts` of a view.
        schema: of the body of its success response, if it has one.
        form: the schema of the form that a client posts; empty for a document, which is the same for everybody.
    """
    summary, _, description = text.partition("\n\n")
    statuses = (400, 401, 413, 415, 429, 500, 503) if form else (400, 413, 429, 500, 503)
    operation: JSONObject = {
        "operationId": name,
        "summary": summary,
        "description": description,
        "tags": ["oauth"],
        "parameters": parameters.build_references("X-Request-Id"),
        "responses": {
            "200": _build_response(200, schema),
            **{str(status): _build_response(status, "OAuthError") for status in statuses},
        },
        # A client without a secret in Authorization names itself in the form.
        "security": [{"client": []}, {}] if form else [],
    }
    if form:
        media_type = {"schema": {"$ref": f"#/components/schemas/{form}"}, "example": _EXAMPLES[form]}
        operation["requestBody"] = {"required": True, "content": {FORM: media_type}}
    return {"post" if form else "get": operation}


def add_oauth_endpoints(result: JSONObject, generator: SchemaGenerator, **options: object) -> JSONObject:
    """Adds the OAuth endpoints that programs call, and the credentials that are not a user's.

    One of drf-spectacular's POSTPROCESSING_HOOKS.

    Args:
        result: the document; changed in place.
        generator: what made it.
        options: what else drf-spectacular passes.

    Returns:
        The document.
    """
    result["paths"] |= {
        "/oauth/token": _build_operation(
            "oauth_token",
            "Exchange a grant for tokens\n\nRFC 6749, section 3.2. Authorization codes require PKCE (RFC 7636).",
            "OAuthTokens",
            form="OAuthTokenRequest",
        ),
        "/oauth/revoke": _build_operation(
            "oauth_revoke",
            "Revoke a token\n\nRFC 7009. Revokes both tokens of the pair. Returns 200 for unknown tokens, too.",
            None,
            form="OAuthTokenReference",
        ),
        "/oauth/introspect": _build_operation(
            "oauth_introspect",
            "Introspect a token\n\nRFC 7662. Clients can introspect only their own tokens.",
            "OAuthIntrospection",
            form="OAuthTokenReference",
        ),
        "/.well-known/oauth-authorization-server": _build_operation(
            "oauth_metadata",
            "Read the OAuth metadata\n\nRFC 8414. Lists the endpoints and features of the authorization server.",
            "OAuthMetadata",
        ),
        "/.well-known/jwks.json": _build_operation(
            "key_set",
            "Read the public signing keys\n\n"
            "RFC 7517. Empty if tokens are signed with a secret. The signature alone does not show whether the login "
            "of a token has been revoked.",
            "KeySet",
        ),
    }
    result["components"]["schemas"].update(_SCHEMAS | {"OAuthMetadata": _build_metadata_schema()})
    result["components"]["securitySchemes"] |= {
        "client": {"type": "http", "scheme": "basic", "description": "An application's `client_id` and secret."},
        "metricsToken": {"type": "http", "scheme": "bearer", "description": "The value of the setting METRICS_TOKEN."},
    }
    return result
