"""The sign-in page, consent for an application of another origin, and the applications that one has authorised."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.service import Service


class Pages(BaseHTTPRequestHandler):
    """An application on two origins. Its callback redirects from the one to the other."""

    DONE = b"<h1>Done</h1><script>opener?.postMessage(location.search, '*')</script>"

    def do_GET(self) -> None:
        is_callback = self.path.startswith("/callback")
        self.send_response(302 if is_callback else 200)
        if is_callback:
            done = self.path.replace("/callback", "/done")
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}{done}")
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if self.path.startswith("/done"):
            self.wfile.write(self.DONE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port(watch: Watch) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever).start()
    watch.hosts |= {f"{name}:{server.server_port}" for name in ("127.0.0.1", "localhost")}
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def authorization(service: Service, port: int, administrator: tuple[str, str]) -> Callable[..., str]:
    """The address of an authorization request of the application."""
    redirect = f"http://127.0.0.1:{port}/callback"
    options = ("--owner", administrator[0], "--grant", "authorization-code", "--scopes", "users:read", "--public")
    made = service.copy.manage("create_oauth_application", "Shop", *options, "--redirect-uri", redirect)

    def address(scope: str = "users:read") -> str:
        asked = {
            "response_type": "code",
            "client_id": json.loads(made.stdout)["client_id"],
            "redirect_uri": redirect,
            "scope": scope,
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        return f"{service.url}/oauth/authorize?{urlencode(asked)}"

    return address


def sign_in(page: Page, administrator: tuple[str, str]) -> None:
    page.get_by_label("Email").fill(administrator[0])
    page.get_by_label("Password").fill(administrator[1])
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize(("button", "parameter"), [("Allow", "code="), ("Deny", "error=access_denied")])
def test_consent_leads_to_the_application_and_on_to_another_origin(
    page: Page, authorization: Callable[..., str], administrator: tuple[str, str], button: str, parameter: str
) -> None:
    page.goto(authorization())
    sign_in(page, administrator)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    assert parameter in page.url


def test_sign_in_leads_to_the_application_whose_request_is_refused(
    page: Page, authorization: Callable[..., str], administrator: tuple[str, str]
) -> None:
    page.goto(f"/session/login?{urlencode({'next': '/oauth' + authorization('users:fly').partition('/oauth')[2]})}")
    sign_in(page, administrator)
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    assert "error=invalid_scope" in page.url


def test_popup_tells_the_page_that_opened_it(
    page: Page, authorization: Callable[..., str], administrator: tuple[str, str], port: int
) -> None:
    page.goto(f"http://127.0.0.1:{port}/")
    page.evaluate("addEventListener('message', ({ data }) => { window.told = data; })")
    with page.expect_popup() as opened:
        page.evaluate("(address) => void window.open(address, 'consent', 'popup')", authorization())
    sign_in(opened.value, administrator)
    opened.value.get_by_role("button", name="Allow", exact=True).click()
    expect(opened.value.get_by_role("heading", name="Done")).to_be_visible()
    assert "code=" in page.wait_for_function("window.told").json_value()


def test_wrong_password_is_told_beside_the_form(
    page: Page, administrator: tuple[str, str], look: Callable[[Page, str], None]
) -> None:
    page.goto("/session/login")
    page.get_by_label("Email").fill(administrator[0])
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    look(page, "sign-in-refused")
