"""The OAuth flows over a socket, with an independent client library: Authlib."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest
import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from django.db import connection

from tests.accounts.oauth.actors import CALLBACK, register
from tests.conftest import PASSWORD

SCOPE = "users:read orders:read"


@pytest.fixture
def origin(live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The service on plain HTTP, with the settings of cookies and Authlib that allow it."""
    settings.PUBLIC_URL = live_server.url
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"OIDC_ISS_ENDPOINT": live_server.url}
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    # An open connection of the server's threads would prevent dropping the database.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    return str(live_server.url)


@pytest.fixture
def metadata(origin: str) -> dict[str, Any]:
    found = requests.get(f"{origin}/.well-known/oauth-authorization-server", timeout=10).json()
    assert found["issuer"] == origin
    return dict(found)


@pytest.fixture
def consent(origin: str, make_user: Any) -> Any:
    """A person who signs in and consents, with the forms of the pages."""
    user = make_user(password=PASSWORD)

    def agree(url: str) -> str:
        browser = requests.Session()
        page = browser.get(url, timeout=10)
        assert page.url.startswith(f"{origin}/session/login")
        page = browser.post(page.url, {**hidden(page), "username": user.email, "password": PASSWORD}, timeout=10)
        assert page.url == url
        answer = browser.post(page.url, {**hidden(page), "decision": "approve"}, timeout=10, allow_redirects=False)
        assert answer.status_code == 302
        return answer.headers["Location"]

    agree.user = user
    return agree


def hidden(page: requests.Response) -> dict[str, str]:
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text)
    return {name: value.replace("&amp;", "&") for name, value in fields}


@pytest.mark.parametrize("public", [False, True])
def test_code_with_pkce_refresh_introspection_and_revocation(origin, metadata, consent, public):
    application = register(public=public)
    session = OAuth2Session(
        application.client_id,
        application.secret,
        scope=SCOPE,
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        token_endpoint_auth_method="none" if public else "client_secret_basic",
    )
    verifier = secrets.token_urlsafe(48)
    url, state = session.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
    back = consent(url)
    assert f"iss={origin.replace(':', '%3A').replace('/', '%2F')}" in back
    token = session.fetch_token(
        metadata["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier
    )
    assert token["scope"] == SCOPE
    assert session.get(f"{origin}/api/protected").json()["data"]["user"]["id"] == consent.user.pk

    refreshed = session.refresh_token(metadata["token_endpoint"])
    assert refreshed["access_token"] != token["access_token"]
    assert session.get(f"{origin}/api/protected").status_code == 200

    if not public:
        told = session.introspect_token(metadata["introspection_endpoint"], token=refreshed["access_token"]).json()
        assert (told["active"], told["sub"]) == (True, str(consent.user.pk))
    assert session.revoke_token(metadata["revocation_endpoint"], token=refreshed["access_token"]).status_code == 200
    assert session.get(f"{origin}/api/protected").status_code == 401
    with pytest.raises(OAuthError, match="invalid_grant"):
        session.refresh_token(metadata["token_endpoint"], refreshed["refresh_token"])


def test_client_credentials(origin, metadata, make_user):
    application = register(make_user(), grant="client-credentials", redirect_uris="")
    for method in ("client_secret_basic", "client_secret_post"):
        session = OAuth2Session(application.client_id, application.secret, token_endpoint_auth_method=method)
        session.fetch_token(metadata["token_endpoint"], grant_type="client_credentials", scope="users:read")
        caller = session.get(f"{origin}/api/protected").json()["data"]
        assert caller["user"]["id"] == application.row.owner_id
        with pytest.raises(OAuthError, match="invalid_scope"):
            session.fetch_token(metadata["token_endpoint"], grant_type="client_credentials", scope="payments:read")
