"""The reference: read, and called from the page with every credential that one can give there."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Watch

Look = Callable[[Page, str], None]
# Milliseconds until the document is made, read and shown, on a machine that has other things to do, too.
PATIENCE = 20_000


@pytest.fixture
def reference(page: Page) -> Page:
    page.goto("/docs")
    expect(index_of(page).get_by_role("link").first).to_be_visible(timeout=PATIENCE)
    return page


def index_of(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Endpoints")


def choose(page: Page, method: str, path: str) -> Locator:
    """The endpoint, opened from the index."""
    index_of(page).get_by_role("link").filter(has=page.get_by_text(method, exact=True)).filter(
        has=page.get_by_text(path, exact=True)
    ).click()
    block = page.locator(f".opblock-{method.lower()}:has([data-path='{path}'])")
    expect(block.locator(".responses-table").first).to_be_visible(timeout=PATIENCE)
    return block


def execute(block: Locator, *, status: int) -> Locator:
    """Sends the request. Returns its answer."""
    block.get_by_role("button", name="Execute").click()
    answer = block.locator(".live-responses-table .response")
    expect(answer.locator(".response-col_status")).to_contain_text(str(status), timeout=PATIENCE)
    return answer


def call(page: Page, method: str, path: str, body: Any = None, *, status: int) -> Any:
    """Does what a person does to call an endpoint. Returns the body that the page shows."""
    block = choose(page, method, path)
    block.get_by_role("button", name="Try it out").click()
    if body is not None:
        block.get_by_label("Request body").fill(json.dumps(body))
    answer = execute(block, status=status)
    return json.loads(answer.locator(".highlight-code pre").first.text_content() or "")


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
        block = choose(reference, method, path)
        look(reference, f"reference-{method.lower()}")
        block.get_by_role("button", name="Try it out").click()
        execute(block, status=401)
        look(reference, f"reference-{method.lower()}-answered")


def test_each_version_has_its_reference(reference: Page, look: Look) -> None:
    versions = reference.get_by_role("navigation", name="Version")
    expect(versions.locator("[aria-current=page]")).to_have_text("Version 2")
    versions.get_by_role("link", name="Version 1").click()
    expect(versions.locator("[aria-current=page]")).to_contain_text("Version 1")
    expect(index_of(reference).get_by_text("/api/v1/users", exact=True).first).to_be_visible(timeout=PATIENCE)
    expect(index_of(reference).get_by_text("/api/v2")).to_have_count(0)
    look(reference, "reference-version-1")


def test_index_lists_every_endpoint_in_the_order_of_the_tags(reference: Page) -> None:
    document = reference.request.get("/openapi.json?version=2").json()
    assert index_of(reference).get_by_role("heading").all_inner_texts() == [tag["name"] for tag in document["tags"]]
    summaries = [operation["summary"] for methods in document["paths"].values() for operation in methods.values()]
    assert sorted(index_of(reference).locator(".summary").all_inner_texts()) == sorted(summaries)


def test_index_is_filtered_by_all_words_of_method_address_and_summary(reference: Page) -> None:
    field = reference.get_by_label("Search endpoints")
    field.fill("POST /payments create")
    links = index_of(reference).get_by_role("link")
    expect(links).to_have_count(1)
    expect(reference.get_by_text("1 endpoint", exact=True)).to_be_visible()
    field.press("Enter")
    expect(reference.get_by_role("heading", name="Create payment")).to_be_focused(timeout=PATIENCE)
    # Descriptions and names of parameters are searched, too.
    field.fill("idempotency")
    expect(index_of(reference).get_by_text("Create payment", exact=True)).to_be_visible()
    field.fill("nothing is called so")
    expect(links).to_have_count(0)


def test_viewer_is_loaded_when_an_endpoint_is_chosen(page: Page) -> None:
    """It blocks a phone for seconds."""
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    page.goto("/docs")
    expect(index_of(page).get_by_role("link").first).to_be_visible(timeout=PATIENCE)
    assert not [url for url in loaded if "swagger" in url]
    choose(page, "GET", "/api/v2/versions")
    assert [url for url in loaded if "swagger-ui-bundle" in url]


def test_address_of_an_endpoint_leads_to_it(page: Page) -> None:
    page.goto("/docs#/payments/payments_create")
    expect(page.get_by_role("heading", name="Create payment")).to_be_focused(timeout=PATIENCE)
    expect(index_of(page).locator("[aria-current]")).to_be_in_viewport(ratio=1)
    expect(page.locator(".opblock")).to_have_count(1)
    page.goto("/docs#/users/users_list")
    expect(page.get_by_role("heading", name="List users")).to_be_focused(timeout=PATIENCE)
    page.go_back()
    expect(page.get_by_role("heading", name="Create payment")).to_be_focused(timeout=PATIENCE)


def test_shown_request_runs_in_each_language(reference: Page, api_key: str, tmp_path: Path) -> None:
    authorize(reference, "apiKey", Value=api_key)
    block = choose(reference, "POST", "/api/v2/orders")
    block.get_by_role("button", name="Try it out").click()
    item = 'A "cup", it\'s $5 & `more`\\ {x} ${y} 🫖'
    block.get_by_label("Request body").fill(json.dumps({"item": item, "qty": 2}, ensure_ascii=False, indent=2))
    block.get_by_label("Idempotency-Key").fill("shown-request")
    made = json.loads(execute(block, status=201).locator(".highlight-code pre").first.text_content() or "")
    assert made["data"]["item"] == item
    commands = {"curl": ["bash"], "Python": [sys.executable], "JavaScript": ["node", "--input-type=module"]}
    for language, command in commands.items():
        block.get_by_label(language, exact=True).check()
        shown = block.get_by_label(f"The request in {language}").inner_text()
        run = subprocess.run([*command, "-"], input=shown, capture_output=True, text=True, timeout=30, check=False)
        # The same key: the order that was made is answered again.
        assert f'"id":{made["data"]["id"]},' in run.stdout, (language, run.stderr)


def test_curl_of_a_filter_with_brackets_runs(reference: Page, api_key: str) -> None:
    authorize(reference, "apiKey", Value=api_key)
    block = choose(reference, "GET", "/api/v2/users")
    block.get_by_role("button", name="Try it out").click()
    block.locator("[data-param-name='id[lte]'] input").fill("2")
    block.locator("[data-param-name='fields'] input").fill("id")
    execute(block, status=200)
    block.get_by_label("curl", exact=True).check()
    shown = block.get_by_label("The request in curl").inner_text().replace("curl ", "curl -s --noproxy '*' ", 1)
    run = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(run.stdout)["data"] == [{"id": 1}, {"id": 2}]


def test_errors_and_headers_of_an_endpoint_are_folded_and_told_once(reference: Page) -> None:
    """Once, each status repeated the same headers: an endpoint was 13,000 pixels high, and 23,000 on a phone."""
    for width, most in ((1440, 6_000), (390, 12_000)):
        reference.set_viewport_size({"width": width, "height": 900})
        reference.goto("about:blank")
        reference.goto("/docs#/payments/payments_create")
        errors = reference.locator(".folded details").filter(has_text="Errors")
        expect(errors).to_be_visible(timeout=PATIENCE)
        assert errors.get_attribute("open") is None
        assert reference.locator(".responses-table .response").count() <= 2
        assert reference.evaluate("document.documentElement.scrollHeight") < most
    errors.locator("summary").click()
    expect(errors.get_by_text("IDEMPOTENCY_KEY_REUSED")).to_have_count(1)


def test_request_has_no_parameter_that_was_not_given(reference: Page, api_key: str) -> None:
    authorize(reference, "apiKey", Value=api_key)
    block = choose(reference, "GET", "/api/v2/orders")
    block.get_by_role("button", name="Try it out").click()
    block.locator("[data-param-name='qty[gte]'] input").fill("3")
    with reference.expect_request("**/api/v2/orders*") as sent:
        execute(block, status=200)
    assert unquote(sent.value.url).partition("?")[2] == "qty[gte]=3"
    assert "if-none-match" not in sent.value.headers
    block = choose(reference, "POST", "/api/v2/orders")
    block.get_by_role("button", name="Try it out").click()
    with reference.expect_request("**/api/v2/orders*") as sent:
        execute(block, status=201)
    assert "?" not in sent.value.url
    assert "idempotency-key" not in sent.value.headers


def test_payment_has_a_fresh_key_each_time(reference: Page, api_key: str) -> None:
    authorize(reference, "apiKey", Value=api_key)
    block = choose(reference, "POST", "/api/v2/payments")
    block.get_by_role("button", name="Try it out").click()
    field = block.get_by_label("Idempotency-Key")
    keys = [field.input_value()]
    for amount in ("1.00", "2.00"):
        block.get_by_label("Request body").fill(json.dumps({"amount": amount}))
        # The answer before it has the same status.
        expect(execute(block, status=201)).to_contain_text(f'"amount": "{amount}"', timeout=PATIENCE)
        expect(field).not_to_have_value(keys[-1])
        keys.append(field.input_value())
    assert all(re.fullmatch(r"[0-9a-f-]{36}", key) for key in keys)
    assert len(set(keys)) == 3


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


def test_key_is_given_once_for_all_pages_of_a_tab(
    reference: Page, context: BrowserContext, api_key: str, watch: Watch
) -> None:
    authorize(reference, "apiKey", Value=api_key)
    assert api_key not in reference.evaluate("JSON.stringify(localStorage)") + json.dumps(context.cookies())
    reference.reload()
    assert call(reference, "GET", "/api/v2/users", status=200)["data"]
    # A browser asks for a page without it first.
    watch.expected.add(401)
    reference.goto("/api/v2/orders?limit=2")
    expect(reference.get_by_text("You are using API key")).to_be_visible()
    expect(reference.locator("tbody tr")).to_have_count(2)
    reference.get_by_role("button", name="Forget this key").click()
    expect(reference.get_by_role("heading", name="401 Unauthorized")).to_be_visible()
    reference.goto("/docs")
    assert call(reference, "GET", "/api/v2/users", status=401)["error"]["code"] == "UNAUTHENTICATED"


def test_other_credentials_are_forgotten_with_the_page(
    reference: Page, administrator: tuple[str, str], watch: Watch
) -> None:
    email, password = administrator
    authorize(reference, "basic", Username=email, Password=password)
    assert password not in reference.evaluate("JSON.stringify([localStorage, sessionStorage])")
    reference.reload()
    watch.expected.add(401)
    assert call(reference, "GET", "/api/v2/users", status=401)["error"]["code"] == "UNAUTHENTICATED"


def test_session_of_the_browser_is_not_used(signed_in: Page, watch: Watch) -> None:
    signed_in.goto("/docs")
    watch.expected.add(401)
    assert call(signed_in, "GET", "/api/v2/users", status=401)["error"]["code"] == "UNAUTHENTICATED"


def test_token_of_oauth_is_given_to_the_page(signed_in: Page, look: Look) -> None:
    signed_in.goto("/docs")
    signed_in.get_by_role("button", name="Authorize", exact=True).click()
    dialog = signed_in.get_by_role("dialog", name="Authorize")
    flow = dialog.locator(".auth-container").filter(has_text="authorizationCode")
    expect(flow.get_by_label("client_id")).to_have_value("reference", timeout=PATIENCE)
    # By keyboard: the viewer draws boxes of its own, and links that are none.
    flow.get_by_role("button", name="select all").press("Enter")
    expect(flow.get_by_role("checkbox", checked=False)).to_have_count(0)
    flow.get_by_role("button", name="select none").press("Enter")
    flow.get_by_label("users:read", exact=False).press("Space")
    expect(flow.get_by_role("checkbox", checked=True)).to_have_count(1)
    for scheme in ("light", "dark"):
        signed_in.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its literals
        look(signed_in, f"reference-oauth-{scheme}")
    with signed_in.expect_popup() as opened:
        flow.get_by_role("button", name="Authorize").click()
    opened.value.get_by_role("button", name="Allow", exact=True).click()
    expect(signed_in.get_by_text("Authorized with oauth2.")).to_be_visible()
    signed_in.keyboard.press("Escape")
    assert call(signed_in, "GET", "/api/v2/users", status=200)["data"]
