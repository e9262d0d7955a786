"""The guide: every page, on every screen."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from config.site.documentation import PAGES
from tests.service import Service


@pytest.mark.parametrize("name", PAGES)
def test_page_keeps_nobody_out(page: Page, look: Callable[[Page, str], None], name: str) -> None:
    page.goto(f"/docs/{name}")
    expect(page.get_by_role("navigation", name="Guide").locator("[aria-current=page]")).to_have_count(1)
    look(page, f"guide-{name}")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    # What one came for is on the first screen: the other pages stand behind a button.
    assert page.get_by_role("heading", level=1).bounding_box()["y"] < 400  # type: ignore[index]
    page.get_by_role("button", name="All pages of the guide").click()
    expect(page.get_by_role("navigation", name="Guide").locator("[aria-current=page]")).to_be_visible()
    page.keyboard.press("Escape")
    look(page, f"guide-{name}-small")
    # On these pages nothing is somebody else's markup, so that lesser faults are not there either.
    assert page.evaluate("axe.run(document)")["violations"] == []


def test_keyboard_skips_to_the_content(page: Page) -> None:
    page.goto("/docs/lists")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_error_leads_to_its_entry(page: Page) -> None:
    answer = page.request.get("/api/v2/nowhere")
    address = answer.headers["link"].partition(">")[0].removeprefix("<")
    page.goto(address)
    expect(page.get_by_role("heading", name="NOT_FOUND", exact=True)).to_be_in_viewport()


def test_language_is_chosen_once_for_all_examples(page: Page) -> None:
    page.goto("/docs/first-request")
    examples = page.locator(".example:has(.languages)")
    expect(examples.nth(1).locator(".in-curl").first).to_be_visible()
    examples.nth(1).get_by_label("Python").check()
    for number in range(examples.count()):
        expect(examples.nth(number).locator(".in-python").first).to_be_visible()
        expect(examples.nth(number).locator(".in-curl").first).to_be_hidden()
    page.goto("/docs/retries")
    expect(page.get_by_label("Python").first).to_be_checked()
    page.get_by_label("Python").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("JavaScript").first).to_be_checked()
    expect(page.locator(".in-javascript").first).to_be_visible()


def test_example_is_copied(page: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/docs/lists")
    call = page.locator(".call.in-curl").first
    call.hover()
    call.get_by_role("button", name="Copy").click()
    expect(call.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == (
        'curl -H "X-API-Key: $KEY" "$API/users?limit=2&fields=id"'
    )


def test_search_leads_to_the_section(page: Page, look: Callable[[Page, str], None]) -> None:
    page.goto("/docs/first-request")
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search the guide")
    expect(field).to_be_focused()
    page.keyboard.type("idempotency_key_reused")
    results = page.get_by_role("search").get_by_role("link")
    expect(results.first).to_contain_text("IDEMPOTENCY_KEY_REUSED")
    look(page, "guide-search")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/docs/errors#IDEMPOTENCY_KEY_REUSED$"))
    page.get_by_role("searchbox").fill("qwertyuiop")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Nothing found")).to_have_count(0)


def test_examples_are_read_without_a_script(browser: Browser, service: Service) -> None:
    context = browser.new_context(base_url=service.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/docs/lists")
    example = page.locator(".example").first
    expect(example.locator(".in-curl").first).to_be_visible()
    example.get_by_label("Python").check()
    expect(example.locator(".in-python").first).to_be_visible()
    expect(example.locator(".in-curl").first).to_be_hidden()
    context.close()
