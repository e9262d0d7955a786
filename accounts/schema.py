"""The credentials, as OpenAPI security schemes."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class PrincipalScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.PrincipalAuthentication"
    name = ["apiKey", "apiKeyInQuery", "bearer", "basic"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Any one of them, not all of them."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            {"type": "apiKey", "in": "query", "name": "api_key"},
            {"type": "http", "scheme": "bearer", "description": "An access token from login."},
            {"type": "http", "scheme": "basic", "description": "Email and password."},
        ]
