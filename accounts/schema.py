"""The credentials, as OpenAPI security schemes."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.permissions import SAFE_METHODS

from accounts.permissions import APIKeyPermission
from config.api.principal import SCOPE_TEXTS


class PrincipalScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.PrincipalAuthentication"
    name = ["apiKey", "apiKeyInQuery", "bearer", "basic", "oauth2"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Any one of them, not all of them; of what only the password's owner may do, those made from the password."""
        if APIKeyPermission in auto_schema.view.permission_classes and auto_schema.method not in SAFE_METHODS:
            return [{"bearer": []}, {"basic": []}]
        scope = auto_schema.view.required_scope(auto_schema.method)
        return [{name: [scope] if name == "oauth2" and scope else []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        token = {"tokenUrl": f"{settings.PUBLIC_URL}/oauth/token", "scopes": SCOPE_TEXTS}
        code = token | {
            "authorizationUrl": f"{settings.PUBLIC_URL}/oauth/authorize",
            "refreshUrl": f"{settings.PUBLIC_URL}/oauth/token",
        }
        return [
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            {"type": "apiKey", "in": "query", "name": "api_key"},
            {"type": "http", "scheme": "bearer", "description": "An access token from login."},
            {"type": "http", "scheme": "basic", "description": "Email and password."},
            {"type": "oauth2", "flows": {"authorizationCode": code, "clientCredentials": token}},
        ]
