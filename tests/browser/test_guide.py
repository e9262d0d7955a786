"""The guide: every page, on every screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from config.site.documentation import PAGES
from tests.browser.conftest import AXE
from tests.server.conftest import Service


@pytest.mark.parametrize("name", PAGES)
def test_page_keeps_nobody_out(page: Page, look: Callable[[Page, str], None], name: str) -> None:
    page.goto(f"/docs/{name}")
    expect(page.get_by_role("navigation", name="Guide").locator("[aria-current=page]")).to_have_count(1)
    look(page, f"guide-{name}")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    look(page, f"guide-{name}-small")
    # On these pages nothing is somebody else's markup, so that lesser faults are not there either.
    assert page.evaluate("axe.run(document)")["violations"] == []


def test_page_in_the_dark(browser: Browser, service: Service) -> None:
    context = browser.new_context(base_url=service.url, color_scheme="dark")
    page = context.new_page()
    page.goto("/docs/errors")
    page.evaluate(AXE.read_text())
    assert page.evaluate("axe.run(document)")["violations"] == []
    context.close()


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
