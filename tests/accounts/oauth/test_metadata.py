"""The metadata document (RFC 8414)."""

import pytest

from config.api.principal import SCOPES

PATH = "/.well-known/oauth-authorization-server"
ISSUER = "https://api.example.com"


def test_metadata_is_what_the_service_does(nobody):
    answer = nobody.get(PATH)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    with_secret = ["client_secret_basic", "client_secret_post"]
    assert answer.body == {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/oauth/authorize",
        "token_endpoint": f"{ISSUER}/oauth/token",
        "revocation_endpoint": f"{ISSUER}/oauth/revoke",
        "introspection_endpoint": f"{ISSUER}/oauth/introspect",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": [*with_secret, "none"],
        "revocation_endpoint_auth_methods_supported": [*with_secret, "none"],
        "introspection_endpoint_auth_methods_supported": with_secret,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{ISSUER}/docs",
    }


def test_metadata_does_not_follow_the_host_header(nobody):
    assert nobody.get(PATH, Host="localhost").body["issuer"] == ISSUER


@pytest.mark.parametrize("path", [PATH, "/.well-known/jwks.json"])
def test_metadata_is_read_only(nobody, path):
    answer = nobody.post(path, {})
    assert (answer.status, answer.body["error"]) == (405, "invalid_request")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Cache-Control"] == "no-store"
    assert nobody("HEAD", PATH).status == 200
