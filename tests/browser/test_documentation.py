"""The reference: read, and called from the page with every credential that one can give there."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Watch

Look = Callable[[Page, str], None]
# Milliseconds until the document is made, read and shown, on a machine that has other things to do, too.
PATIENCE = 20_000


@pytest.fixture
def reference(page: Page) -> Page:
    page.goto("/docs")
    expect(page.get_by_role("heading", level=2, name="Endpoints")).to_be_visible(timeout=PATIENCE)
    return page


def endpoint(page: Page, method: str, path: str) -> Locator:
    return page.locator(f".opblock:has(.opblock-summary-{method.lower()} [data-path='{path}'])")


def call(page: Page, method: str, path: str, body: Any = None, *, status: int) -> Any:
    """Does what a person does to call an endpoint. Returns the body that the page shows."""
    block = endpoint(page, method, path)
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    if body is not None:
        block.get_by_label("Request body").fill(json.dumps(body))
    block.get_by_role("button", name="Execute").click()
    answer = block.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text(str(status), timeout=PATIENCE)
    shown = answer.locator(".highlight-code pre").first.text_content() or ""
    block.locator(".opblock-summary-control").click()
    return json.loads(shown)


def authorize(page: Page, scheme: str, **fields: str) -> None:
    page.get_by_role("button", name="Authorize", exact=True).click()
    dialog = page.get_by_role("dialog", name="Authorize")
    for label, value in fields.items():
        dialog.get_by_label(f"{label}: {scheme}", exact=True).fill(value)
    dialog.get_by_role("button", name=f"Authorize: {scheme}", exact=True).click()
    expect(dialog.get_by_role("button", name="Remove authorization")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_reference_in_all_its_states_keeps_nobody_out(reference: Page, watch: Watch, look: Look) -> None:
    look(reference, "reference")
    reference.get_by_role("button", name="Authorize", exact=True).click()
    expect(reference.get_by_label("Value: apiKey")).to_be_focused()
    look(reference, "reference-authorize")
    reference.keyboard.press("Escape")
    watch.expected.add(401)
    for method, path in (("GET", "/api/v2/users"), ("POST", "/api/v2/users")):
        block = endpoint(reference, method, path)
        block.locator(".opblock-summary-control").click()
        look(reference, f"reference-{method.lower()}")
        block.get_by_role("button", name="Try it out").click()
        block.get_by_role("button", name="Execute").click()
        expect(block.locator(".live-responses-table .response .response-col_status")).to_contain_text("401")
        look(reference, f"reference-{method.lower()}-answered")


def test_reference_on_a_small_screen(reference: Page, look: Look) -> None:
    reference.set_viewport_size({"width": 400, "height": 800})
    assert reference.evaluate("document.documentElement.scrollWidth") == 400
    look(reference, "reference-small")


def test_each_version_has_its_reference(reference: Page, look: Look) -> None:
    versions = reference.get_by_role("navigation", name="Version")
    expect(versions.locator("[aria-current=page]")).to_have_text("Version 2")
    versions.get_by_role("link", name="Version 1").click()
    expect(versions.locator("[aria-current=page]")).to_contain_text("Version 1")
    expect(endpoint(reference, "GET", "/api/v1/users")).to_be_visible(timeout=PATIENCE)
    expect(reference.locator("[data-path^='/api/v2']")).to_have_count(0)
    look(reference, "reference-version-1")


@pytest.mark.parametrize("credential", ["API key", "bearer", "basic"])
def test_user_is_created_and_listed_from_the_page(
    reference: Page, administrator: tuple[str, str], api_key: str, credential: str
) -> None:
    email, password = administrator
    match credential:
        case "API key":
            authorize(reference, "apiKey", Value=api_key)
        case "basic":
            authorize(reference, "basic", Username=email, Password=password)
        case "bearer":
            pair = call(reference, "POST", "/api/v2/login", {"email": email, "password": password}, status=200)
            authorize(reference, "bearer", Value=pair["data"]["access_token"])
    new = {"name": "From the page", "email": f"{credential.replace(' ', '')}@page.example"}
    made = call(reference, "POST", "/api/v2/users", new, status=201)["data"]
    assert {name: made[name] for name in new} == new
    listed = call(reference, "GET", "/api/v2/users", status=200)
    assert listed["success"] is True
    assert listed["data"]


def test_credential_is_forgotten_with_the_page(
    reference: Page, context: BrowserContext, api_key: str, watch: Watch
) -> None:
    authorize(reference, "apiKey", Value=api_key)
    stored = reference.evaluate("JSON.stringify([localStorage, sessionStorage])")
    assert api_key not in stored + json.dumps(context.cookies())
    reference.reload()
    watch.expected.add(401)
    assert call(reference, "GET", "/api/v2/users", status=401)["error"]["code"] == "UNAUTHENTICATED"


def test_session_of_the_browser_is_not_used(signed_in: Page, watch: Watch) -> None:
    signed_in.goto("/docs")
    watch.expected.add(401)
    assert call(signed_in, "GET", "/api/v2/users", status=401)["error"]["code"] == "UNAUTHENTICATED"
