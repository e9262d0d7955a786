"""The main ways with the keyboard alone: Tab, Enter, Escape, Space and arrows, and always in sight where one is."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Watch

MAX_STOPS = 120
# What is focused, unless nothing marks it: an outline or a shadow of its own, or of the label around a hidden choice.
UNMARKED = """() => {
  const one = document.activeElement;
  const isMarked = (element) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  };
  if (one === document.body || isMarked(one) || (one.closest("label") && isMarked(one.closest("label")))) return null;
  return one.outerHTML.slice(0, 200);
}"""


class Keyboard:
    """Hands that have no mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def tab_to(self, target: Locator, key: str = "Tab") -> None:
        """Goes on until the target is focused; every stop is marked."""
        for _ in range(MAX_STOPS):
            self.press(key)
            assert self.page.evaluate(UNMARKED) is None
            if target.evaluate("one => one === document.activeElement"):
                return
        pytest.fail(f"{MAX_STOPS} stops do not lead to {target}")


@pytest.fixture
def keyboard(page: Page) -> Keyboard:
    return Keyboard(page)


def test_sign_in_and_out(page: Page, keyboard: Keyboard, administrator: tuple[str, str]) -> None:
    page.goto("/")
    keyboard.tab_to(page.get_by_role("link", name="Skip to the content"))
    keyboard.tab_to(page.get_by_role("banner").get_by_role("link", name="Sign in"))
    keyboard.press("Enter")
    expect(page.get_by_label("Email")).to_be_focused()
    keyboard.type(administrator[0])
    keyboard.tab_to(page.get_by_label("Password"))
    keyboard.type(administrator[1])
    keyboard.press("Enter")
    expect(page.get_by_role("banner")).to_contain_text(administrator[0])
    keyboard.tab_to(page.get_by_role("banner").get_by_role("button", name="Administrator"))
    keyboard.press("Enter")
    keyboard.tab_to(page.get_by_role("button", name="Sign out"))
    keyboard.press("Enter")
    expect(page.get_by_role("banner").get_by_role("link", name="Sign in")).to_be_visible()


def test_guide_is_searched_and_shown_in_another_language(page: Page, keyboard: Keyboard) -> None:
    page.goto("/docs/first-request")
    keyboard.press("/")
    field = page.get_by_label("Search the guide")
    expect(field).to_be_focused()
    keyboard.type("idempotency")
    results = page.get_by_role("search").get_by_role("link")
    expect(results.first).to_be_visible()
    keyboard.press("Escape")
    expect(results).to_have_count(0)
    expect(field).to_be_focused()
    keyboard.type("cursor")
    expect(results.first).to_be_visible()
    address = results.first.get_attribute("href") or ""
    keyboard.tab_to(results.first)
    keyboard.press("Enter")
    page.wait_for_url(f"**{address}")
    page.goto("/docs/first-request")
    examples = page.locator(".example:has(.languages)")
    keyboard.tab_to(examples.first.get_by_label("curl"))
    keyboard.press("ArrowRight")
    expect(examples.first.get_by_label("Python")).to_be_focused()
    expect(examples.last.get_by_label("Python")).to_be_checked()
    keyboard.tab_to(examples.first.get_by_role("button", name="Copy").first)


def test_endpoint_is_found_and_called(page: Page, keyboard: Keyboard, api_key: str) -> None:
    page.goto("/docs")
    expect(page.get_by_role("navigation", name="Endpoints").get_by_role("link").first).to_be_visible(timeout=20_000)
    authorize = page.get_by_role("button", name="Authorize", exact=True)
    keyboard.tab_to(authorize)
    keyboard.press("Enter")
    field = page.get_by_label("Value: apiKey")
    expect(field).to_be_focused(timeout=20_000)
    dialog = page.get_by_role("dialog", name="Authorize")
    keyboard.type(api_key)
    keyboard.press("Enter")
    expect(page.get_by_text("Authorized with apiKey.")).to_be_visible()
    # The page behind the dialog is out of reach.
    for _ in range(40):
        keyboard.press("Tab")
        assert dialog.evaluate(
            "dialog => dialog.contains(document.activeElement) || document.activeElement === document.body"
        )
    keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(authorize).to_be_focused()
    keyboard.press("/")
    expect(page.get_by_label("Search endpoints")).to_be_focused()
    keyboard.type("list comments of the")
    keyboard.press("Enter")
    expect(page.get_by_role("heading", name="List a post's comments")).to_be_focused(timeout=20_000)
    keyboard.tab_to(page.get_by_role("button", name="Try it out"))
    keyboard.press("Enter")
    keyboard.tab_to(page.get_by_label("post_id", exact=True))
    keyboard.type("1")
    keyboard.tab_to(page.get_by_role("button", name="Execute"))
    keyboard.press("Enter")
    expect(page.locator(".live-responses-table .response .response-col_status")).to_contain_text("200")
    keyboard.tab_to(page.locator(".request").get_by_label("curl", exact=True))
    keyboard.press("ArrowRight", "ArrowRight")
    expect(page.get_by_label("The request in JavaScript")).to_be_visible()
    index = page.locator(".index > summary")
    keyboard.tab_to(index, "Shift+Tab")
    keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Endpoints")).to_be_hidden()


def test_row_is_reached_from_a_list_and_changed(
    page: Page, keyboard: Keyboard, administrator: tuple[str, str], watch: Watch
) -> None:
    watch.expected = {401}
    page.goto("/api/v2/posts?limit=2")
    keyboard.tab_to(page.get_by_role("main").get_by_role("link", name="Sign in"))
    keyboard.press("Enter")
    expect(page.get_by_label("Email")).to_be_focused()
    keyboard.type(administrator[0])
    keyboard.press("Tab")
    keyboard.type(administrator[1])
    keyboard.press("Enter")
    row = page.locator("tbody tr").first.get_by_role("link").first
    expect(row).to_be_visible()
    headers = page.locator("summary", has_text="Headers")
    keyboard.tab_to(headers)
    keyboard.press("Enter")
    expect(page.locator("dl.headers")).to_be_visible()
    keyboard.press("Space")
    expect(page.locator("dl.headers")).to_be_hidden()
    keyboard.tab_to(row, "Shift+Tab")
    keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/posts/\d+$"))
    keyboard.tab_to(page.locator("#patch > summary"))
    keyboard.press("Enter")
    keyboard.tab_to(page.locator("#patch").get_by_label("title"))
    keyboard.press("Control+A")
    keyboard.type("By keyboard")
    keyboard.tab_to(page.locator("#patch .send"))
    keyboard.press("Enter")
    expect(page.locator(".answer .request")).to_contain_text("PATCH")
    expect(page.get_by_role("heading", name="200 OK")).to_be_focused()
    expect(page.locator(".answer pre")).to_contain_text("By keyboard")


def test_user_is_found_and_changed_in_the_admin(signed_in: Page, keyboard: Keyboard) -> None:
    signed_in.goto("/admin/users/user/")
    keyboard.tab_to(signed_in.locator("#searchbar"))
    keyboard.type("12")
    keyboard.press("Enter")
    signed_in.wait_for_url("**/?q=12")
    keyboard.tab_to(signed_in.locator("#result_list tbody th a").first)
    keyboard.press("Enter")
    signed_in.wait_for_url("**/change/**")
    keyboard.tab_to(signed_in.get_by_label("Status:"))
    keyboard.tab_to(signed_in.get_by_role("button", name="Save", exact=True))
    keyboard.press("Enter")
    expect(signed_in.get_by_text("was changed successfully")).to_be_visible()
