"""The browsable API: reading, filtering, and writing with the forms of its pages."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, Response, expect

from tests.browser.conftest import Watch
from tests.service import Service

Look = Callable[[Page, str], None]
NASTY = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"
CUT_OFF = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.outerHTML.slice(0, 200))"
KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture
def at(signed_in: Page) -> Callable[[str], Page]:
    """Opens an address as the administrator."""

    def open_page(path: str) -> Page:
        signed_in.goto(path)
        return signed_in

    return open_page


def form_of(page: Page, method: str) -> Locator:
    """The form of a method, unfolded."""
    tool = page.locator(f"#{method.lower()}")
    if tool.get_attribute("open") is None:
        tool.locator("> summary").click()
    return tool


def send(tool: Locator) -> None:
    tool.locator(".send").click()


def status_of(part: Locator) -> Locator:
    return part.locator(".answer h2").first


def shown(part: Page | Locator) -> Any:
    # The JSON of a list is folded.
    return json.loads(part.locator(".answer pre").text_content() or "")


def shown_header(part: Locator, name: str) -> str:
    return part.locator(f".answer dt:text-is('{name}') + dd").text_content() or ""


# --- Reading


@pytest.mark.parametrize("path", ["users", "orders", "payments", "posts", "api-keys"])
def test_every_column_of_a_list_is_in_sight_and_covers_no_other(at: Callable[[str], Page], path: str) -> None:
    page = at("/api/v2/users/12")
    assert page.request.patch(
        page.url,
        data={"external_id": "customer-000012"},
        headers={
            "X-CSRFToken": page.locator("meta[name=csrf-token]").get_attribute("content") or "",
            "Referer": page.url,
        },
    ).ok
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/api/v2/{path}")
    expect(page.locator("tbody td").first).to_be_visible()
    assert page.locator(".rows, .rows td").evaluate_all(CUT_OFF) == []


def test_keys_of_json_stand_on_the_line_of_their_values(at: Callable[[str], Page]) -> None:
    page = at("/api/v2/users/1")
    pairs = page.locator(".json").evaluate(
        """pre => [...pre.querySelectorAll("span.key + :is(.string, .plain)")]
             .map(value => [value.previousElementSibling, value].map(span => span.getClientRects()[0].top))"""
    )
    assert len(pairs) > 5
    assert all(abs(key - value) < 2 for key, value in pairs), pairs


@pytest.mark.parametrize(("name", "ending"), [("CSV", ".csv"), ("NDJSON", ".ndjson")])
def test_whole_list_is_saved_as_a_file(at: Callable[[str], Page], watch: Watch, name: str, ending: str) -> None:
    page = at("/users?role=admin&fields=id,role&page=2&limit=5")
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    assert download.value.suggested_filename == f"users{ending}"
    lines = download.value.path().read_text().splitlines()
    if name == "CSV":
        assert lines[0] == "id,role"
        assert all(line.endswith(",admin") for line in lines[1:])
    else:
        assert {json.loads(line)["role"] for line in lines} == {"admin"}
    assert len(lines) > 5
    expect(page.locator(".downloads [role=status]")).to_have_text("Saved.")


@pytest.mark.parametrize("width", [1280, 390])
def test_million_orders_are_searched_and_filtered_without_a_script(
    browser: Browser, service: Service, administrator: tuple[str, str], *, width: int
) -> None:
    context = browser.new_context(
        base_url=service.url, java_script_enabled=False, viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    page.goto("/session/login?next=/api/v2/orders")
    page.get_by_label("Email").fill(administrator[0])
    page.get_by_label("Password").fill(administrator[1])
    page.get_by_role("button", name="Sign in").click()
    query = page.locator("#list")
    query.get_by_text("Ranges").click()
    query.get_by_label("qty[gte]").fill("3")
    query.get_by_label("qty[lte]").press("Enter")
    # The empty fields are gone.
    expect(page.get_by_role("columnheader", name="qty")).to_have_attribute("aria-sort", "ascending")
    assert min(row["qty"] for row in shown(page)["data"]) >= 3
    query.get_by_label("qty[gte]").fill("")
    query.get_by_label("q", exact=True).fill("no-such-item")
    query.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("table")).to_contain_text("No results.")
    query.get_by_label("q", exact=True).fill("")
    query.get_by_role("button", name="Apply").click()
    page.get_by_role("columnheader", name="item").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="item")).to_have_attribute("aria-sort", "ascending")
    context.close()


# --- Writing


def create_user(page: Page, name: str, email: str) -> str:
    """Fills the form of `/users`, and goes on to the new user by the link of its Location. Returns its path."""
    tool = form_of(page, "POST")
    tool.get_by_label("name", exact=True).fill(name)
    tool.get_by_label("email", exact=True).fill(email)
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("201 Created"))
    location = shown_header(tool, "Location")
    tool.get_by_role("link", name=location, exact=True).first.click()
    page.wait_for_url(f"**{location}")
    return location


def test_user_is_created_edited_and_deleted_and_a_stale_tag_is_told(
    at: Callable[[str], Page], watch: Watch, look: Look
) -> None:
    watch.expected = {412, 404}
    page = at("/api/v2/users")
    path = create_user(page, "Nina New", "nina.new@example.com")
    stale = page.locator("#patch-if-match").input_value()
    tool = form_of(page, "PATCH")
    tool.get_by_label("name", exact=True).fill("Nina Newer")
    tool.get_by_text("Request body (JSON)").click()
    assert json.loads(tool.locator(".body").input_value()) == {"name": "Nina Newer"}
    send(tool)
    expect(page.locator(".answer h2")).to_be_focused()
    expect(page.locator(".answer .request")).to_contain_text(f"PATCH {path}")
    assert shown(page)["data"]["name"] == "Nina Newer"
    fresh = page.locator("#patch-if-match").input_value()
    assert fresh != stale

    tool = form_of(page, "PATCH")
    tool.get_by_label("name", exact=True).fill("Nina Stale")
    tool.get_by_label("If-Match").fill(stale)
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("412 Precondition Failed"))
    expect(status_of(tool)).to_be_focused()
    expect(tool.get_by_label("If-Match")).to_have_attribute("aria-invalid", "true")
    expect(tool.locator("#patch-if-match-problem")).to_contain_text("The resource has changed")
    look(page, "browsable-412")
    tool.get_by_role("button", name="Reload and keep my changes").click()
    tool = form_of(page, "PATCH")
    expect(tool.locator(".notice")).to_be_focused()
    expect(tool.locator(".notice")).to_contain_text("Your unsaved changes: name.")
    expect(tool.get_by_label("If-Match")).to_have_value(fresh)
    send(tool)
    # The page's own answer was 200 before, too.
    expect(page.locator(".answer .request")).to_contain_text(f"PATCH {path}")
    expect(page.locator(".answer h2")).to_contain_text("200")
    assert shown(page)["data"]["name"] == "Nina Stale"

    tool = form_of(page, "PUT")
    tool.get_by_label("status").select_option("inactive")
    send(tool)
    expect(page.locator(".answer .request")).to_contain_text("PUT")
    assert shown(page)["data"]["status"] == "inactive"
    assert shown(page)["data"]["email"] == "nina.new@example.com"

    tool = form_of(page, "DELETE")
    send(tool)
    expect(status_of(tool)).to_have_count(0)
    tool.get_by_label("Yes, delete").check()
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("204"))
    look(page, "browsable-204")
    page.reload()
    expect(page.locator(".answer h2")).to_have_text("404 Not Found")


def test_edits_of_a_stale_form_are_kept_beside_what_somebody_else_changed(
    at: Callable[[str], Page], watch: Watch, look: Look
) -> None:
    watch.expected = {412}
    page = at("/api/v2/users")
    path = create_user(page, "Two Tabs", "two.tabs@example.com")
    other = page.context.new_page()
    other.goto(path)
    tool = form_of(other, "PATCH")
    tool.get_by_label("name", exact=True).fill("From the other tab")
    tool.get_by_label("status").select_option("inactive")
    send(tool)
    expect(other.locator(".answer .request")).to_contain_text("PATCH")

    tool = form_of(page, "PUT")
    tool.get_by_label("name", exact=True).fill("From this tab")
    tool.get_by_label("email", exact=True).fill("changed.tabs@example.com")
    send(tool)
    tool.get_by_role("button", name="Reload and keep my changes").click()
    tool = form_of(page, "PUT")
    expect(tool.locator(".notice")).to_contain_text("name, email")
    # What only the other one changed is taken over; what both did is told.
    expect(tool.get_by_label("status")).to_have_value("inactive")
    expect(tool.get_by_label("name", exact=True)).to_have_value("From this tab")
    expect(tool.locator("#put-name-problem")).to_have_text("Someone else changed this to: From the other tab")
    expect(tool.locator("#put-email-problem")).to_have_text("")
    look(page, "browsable-412-kept")
    send(tool)
    expect(page.locator(".answer .request")).to_contain_text("PUT")
    row = shown(page)["data"]
    assert (row["name"], row["email"], row["status"]) == ("From this tab", "changed.tabs@example.com", "inactive")


def test_requests_are_copied_as_curl_commands_that_work(
    at: Callable[[str], Page], service: Service, api_key: str
) -> None:
    page = at("/api/v2/users?limit=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def copied() -> str:
        return str(page.evaluate("navigator.clipboard.readText()"))

    def run(command: str) -> Any:
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace("curl ", "curl -s --noproxy '*' ", 1)],
            env={**os.environ, "KEY": api_key},
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)

    page.locator("#answer").get_by_role("button", name="Copy as curl").click()
    assert copied() == f"curl -H \"X-API-Key: $KEY\" '{service.url}/api/v2/users?limit=2'"
    assert len(run(copied())["data"]) == 2
    page.goto("/api/v2/users?id[lt]=3&fields=id")
    page.locator("#answer").get_by_role("button", name="Copy as curl").click()
    assert run(copied())["data"] == [{"id": 1}, {"id": 2}]
    page.goto("/api/v2/users")
    tool = form_of(page, "POST")
    tool.get_by_label("name", exact=True).fill("It's $HOME `id`")
    tool.get_by_label("email", exact=True).fill("curl@example.com")
    tool.get_by_role("button", name="Copy as curl").click()
    assert "csrf" not in copied().lower()
    assert run(copied())["data"]["name"] == "It's $HOME `id`"


def test_problems_are_told_beside_their_fields(at: Callable[[str], Page], watch: Watch, look: Look) -> None:
    watch.expected = {400}
    page = at("/api/v1/orders")
    tool = form_of(page, "POST")
    tool.get_by_label("qty").fill("0")
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("400 Bad Request"))
    expect(status_of(tool)).to_be_focused()
    for name in ("item", "qty"):
        control = tool.get_by_label(name)
        expect(control).to_have_attribute("aria-invalid", "true")
        problem = tool.locator(f"#post-{name}-problem")
        expect(problem).not_to_be_empty()
        assert f"post-{name}-problem" in (control.get_attribute("aria-describedby") or "")
    expect(tool.get_by_label("user_id")).not_to_have_attribute("aria-invalid", "true")
    look(page, "browsable-400")
    tool.get_by_role("link", name="item").click()
    expect(tool.get_by_label("item")).to_be_focused()
    tool.get_by_label("item").fill("A lamp")
    tool.get_by_label("qty").fill("2")
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("201"))
    expect(tool.locator("[aria-invalid]")).to_have_count(0)


def test_payment_sent_twice_with_its_key_is_made_once_and_exact(
    at: Callable[[str], Page], watch: Watch, look: Look
) -> None:
    watch.expected = {400}
    page = at("/api/v1/payments")
    before = shown(page)["meta"]["total"]
    tool = form_of(page, "POST")
    key = tool.get_by_label("Idempotency-Key").input_value()
    assert KEY.fullmatch(key)
    tool.get_by_label("amount").fill("9999999999.99")
    tool.get_by_text("Request body (JSON)").click()
    assert tool.locator(".body").input_value() == '{\n  "amount": 9999999999.99\n}'
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("201"))
    first = tool.locator(".answer pre").text_content()
    assert '"amount": 9999999999.99' in first
    send(tool)
    expect(tool.locator(".answer dl")).to_contain_text("Idempotent-Replayed")
    assert tool.locator(".answer pre").text_content() == first
    look(page, "browsable-replayed")
    tool.get_by_label("Idempotency-Key").fill("")
    send(tool)
    expect(tool.locator("#post-key-problem")).to_contain_text("Send the header")
    # More digits than a JavaScript number holds: the service is to say what is wrong with it.
    tool.get_by_role("button", name="New key").click()
    tool.get_by_label("amount").fill("00.1000000000000000000000001")
    assert tool.locator(".body").input_value() == '{\n  "amount": 0.1000000000000000000000001\n}'
    send(tool)
    expect(tool.locator("#post-amount-problem")).to_contain_text("two decimals")
    page.reload()
    assert shown(page)["meta"]["total"] == before + 1


@pytest.fixture
def no_dialog(signed_in: Page) -> Iterator[None]:
    """Fails when a script of somebody's text runs."""
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    signed_in.on("dialog", note)
    yield
    assert dialogs == []


@pytest.mark.usefixtures("no_dialog")
def test_key_is_made_with_markup_in_its_name_and_shown_once(at: Callable[[str], Page], look: Look) -> None:
    page = at("/")
    page.get_by_role("banner").get_by_role("button", name="Administrator").click()
    page.get_by_role("banner").get_by_role("link", name="API keys").click()
    tool = form_of(page, "POST")
    tool.get_by_label("name", exact=True).fill(NASTY)
    tool.get_by_label("users:read").check()
    send(tool)
    expect(status_of(tool)).to_have_text(re.compile("201"))
    made = shown(tool)["data"]
    assert (made["name"], made["scopes"]) == (NASTY, ["users:read"])
    box = page.get_by_role("region", name="Copy your API key now")
    expect(box).to_contain_text("It is shown only once")
    expect(box.locator("code")).to_have_text(made["key"])
    look(page, "browsable-new-key")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box.get_by_role("button", name="Copy").click()
    expect(box.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == made["key"]
    page.reload()
    expect(box).to_have_count(0)
    expect(page.locator("body")).not_to_contain_text(made["key"])


# --- How it looks, and how soon


@pytest.mark.parametrize(
    "path", ["/api/v1/users", "/api/v1/users?page=25000", "/api/v2/orders", "/api/v1/users/500000"]
)
def test_page_is_small_and_soon_there_beside_a_million_users(at: Callable[[str], Page], path: str) -> None:
    page = at(path)
    response: Response | None = page.goto(path)
    assert response is not None
    assert len(response.body()) < 60_000
    assert response.request.timing["responseEnd"] < 500


# --- Without a session


def test_key_reads_and_writes_where_nobody_is_signed_in(page: Page, api_key: str, watch: Watch, look: Look) -> None:
    watch.expected.add(401)
    page.goto("/api/v2/orders?limit=3")
    look(page, "browsable-unauthenticated")
    field = page.get_by_label("Or enter an API key")
    field.fill("urs_wrong")
    page.get_by_role("button", name="Use the key").click()
    expect(page.get_by_role("heading", name="401 Unauthorized")).to_be_focused()
    field.fill(api_key)
    field.press("Enter")
    expect(page.get_by_role("heading", name="200 OK")).to_be_focused()
    look(page, "browsable-key")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="200 OK")).to_be_focused()
    page.goto("/api/v2/orders?fields=id&user_id=1")
    expect(page.get_by_role("heading", name="200 OK")).to_be_focused()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert download.value.path().read_text().startswith("id\n")
    page.goto("/api/v2/orders")
    expect(page.get_by_role("heading", name="200 OK")).to_be_focused()
    tool = form_of(page, "POST")
    tool.get_by_label("item").fill("With a key alone")
    tool.get_by_label("qty").fill("1")
    send(tool)
    expect(status_of(tool)).to_contain_text("201")
    assert shown(tool)["data"]["item"] == "With a key alone"
    assert page.context.cookies() == []
