"""The parties of OAuth: an application, and a person in a browser who allows or denies its request."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from accounts.models import Application
from accounts.services import save_new_application
from tests.conftest import Answer, Caller, new_client

CALLBACK = "https://client.example/callback"
SCOPES = ["users:read", "orders:read", "orders:write"]
VERIFIER = "the-verifier-of-rfc-7636-has-at-least-43-characters"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
PKCE = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
FORM = "application/x-www-form-urlencoded"


def send(path: str, form: Any, **headers: str) -> Answer:
    """Posts a form without a session: a mapping, a list of pairs, or bytes as they are."""
    body = form if isinstance(form, bytes) else urlencode(form).encode()
    content_type = headers.pop("content_type", FORM)
    return Answer(new_client().generic("POST", path, body, content_type, headers=headers))


@dataclass
class Registered:
    """An application that knows its secret, if it has one, and sends it as Basic."""

    row: Application
    secret: str | None

    @property
    def client_id(self) -> str:
        return self.row.client_id

    def post(self, path: str, /, **form: str | None) -> Answer:
        given = {name: value for name, value in form.items() if value is not None}
        if self.secret is None:
            return send(path, {"client_id": self.client_id, **given})
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.secret)}"
        return send(path, given, Authorization=f"Basic {base64.b64encode(pair.encode()).decode()}")

    def exchange(self, code: str, **changes: str | None) -> Answer:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
        return self.post("/oauth/token", **{**form, **changes})

    def refresh(self, token: str, **more: str) -> Answer:
        return self.post("/oauth/token", grant_type="refresh_token", refresh_token=token, **more)

    def act(self, scope: str | None = "users:read") -> Answer:
        return self.post("/oauth/token", grant_type="client_credentials", scope=scope)

    def introspect(self, token: str) -> Any:
        return self.post("/oauth/introspect", token=token).body


def register(
    owner: Any = None, *, public: bool = False, grant: str = "authorization-code", **columns: Any
) -> Registered:
    row = Application(
        name=columns.pop("name", "Reader"),
        owner=owner,
        client_type="public" if public else "confidential",
        authorization_grant_type=grant,
        allowed_scopes=columns.pop("allowed_scopes", SCOPES),
        redirect_uris=columns.pop("redirect_uris", CALLBACK),
        **columns,
    )
    return Registered(row, save_new_application(row))


class Person:
    """A person in a browser, signed in by default."""

    def __init__(self, user: Any, *, signed_in: bool = True) -> None:
        self.user = user
        self.browser = new_client(checks_csrf=False)
        if signed_in:
            self.browser.force_login(user)

    @staticmethod
    def address(client: Registered, **changes: str | None) -> str:
        asked = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": CALLBACK,
            "scope": "users:read orders:read",
            "state": "s-1",
            **PKCE,
            **changes,
        }
        return f"/oauth/authorize?{urlencode({name: value for name, value in asked.items() if value is not None})}"

    def look(self, client: Registered, **changes: str | None) -> Any:
        return self.browser.get(self.address(client, **changes))

    def decide(self, client: Registered, decision: str = "approve", **changes: str | None) -> dict[str, str]:
        """Submits the consent page. Returns the parameters of the redirect to the client."""
        return returned(self.browser.post(self.address(client, **changes), {"decision": decision}))

    def code(self, client: Registered, **changes: str | None) -> str:
        return self.decide(client, **changes)["code"]

    def tokens(self, client: Registered, **changes: str | None) -> Any:
        return client.exchange(self.code(client, **changes)).body


def returned(response: Any) -> dict[str, str]:
    assert response.status_code == 302, response.content
    target = urlsplit(response["Location"])
    assert f"{target.scheme}://{target.netloc}{target.path}" == CALLBACK, response["Location"]
    return dict(parse_qsl(target.query))


def bearer(token: str, user: Any = None) -> Caller:
    return Caller(user, {"Authorization": f"Bearer {token}"})
