"""A reader who has the address and a key, and follows what is seen: each goal within a few clicks from `/`."""

import re
from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Watch

MAX_CLICKS = 4


class Reader:
    """Counts what is clicked, and how long it takes."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self.began = monotonic()

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def follow(self, name: str, exact: bool = True) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=exact).first)


@pytest.fixture
def reader(page: Page, watch: Watch) -> Iterator[Reader]:
    # A page of the browsable API is asked for without the key first.
    watch.expected.add(401)
    page.goto("/")
    reading = Reader(page)
    yield reading
    assert reading.clicks <= MAX_CLICKS
    assert monotonic() - reading.began < 60


@pytest.fixture
def open_list(reader: Reader, api_key: str) -> Callable[[str], Page]:
    """Goes to a list by the links of the landing page and the entry document, and gives the key there."""

    def open_list(name: str) -> Page:
        reader.follow("Browse")
        reader.follow(f"/api/v2/{name}")
        reader.page.get_by_label("Or enter an API key").fill(api_key)
        # As sending a form by Enter is.
        reader.page.keyboard.press("Enter")
        expect(reader.page.get_by_role("heading", name="200 OK")).to_be_visible()
        return reader.page

    return open_list


def test_page_by_cursor(reader: Reader, open_list: Callable[[str], Page]) -> None:
    page = open_list("users")
    reader.click(page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="next"))
    page.wait_for_url(re.compile(r"[?&]cursor=[^&]+"))
    expect(page.get_by_role("heading", name="200 OK")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("21")


def test_order_with_a_safe_retry(reader: Reader, open_list: Callable[[str], Page]) -> None:
    page = open_list("orders")
    tool = page.locator("#post")
    reader.click(tool.locator("> summary"))
    tool.get_by_label("item").fill("Sent twice")
    tool.get_by_label("qty").fill("1")
    reader.click(tool.get_by_role("button", name="Send POST"))
    expect(tool.locator(".answer h2")).to_contain_text("201")
    address = tool.locator(".location a").get_attribute("href")
    # The retry: the same form, with the same key.
    tool.get_by_role("button", name="Send POST").click()
    expect(tool.locator("dt", has_text="Idempotent-Replayed")).to_have_count(1)
    assert tool.locator(".location a").get_attribute("href") == address


def test_token_by_oauth_is_explained_and_its_endpoint_is_called(reader: Reader) -> None:
    page = reader.page
    reader.follow("Guide")
    expect(page.get_by_role("heading", level=1)).to_have_text("First request")
    reader.click(page.get_by_role("navigation", name="Guide").get_by_role("link", name="OAuth", exact=False))
    expect(page.get_by_role("main")).to_contain_text("/oauth/authorize")
    expect(page.get_by_role("main")).to_contain_text("/oauth/token")
    expect(page.get_by_role("main")).to_contain_text("access_token")
    expect(page.get_by_role("main")).to_contain_text("manage.py create_oauth_application Shop")
    expect(page.get_by_role("heading", name="A complete client")).to_be_visible()


def test_list_of_what_is_deprecated(reader: Reader) -> None:
    reader.follow("See what changed and what is deprecated")
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("Versions")
    expect(reader.page.get_by_role("heading", name="Changes in version 2")).to_be_visible()
    row = reader.page.get_by_role("row").filter(has_text="deprecated")
    expect(row.first).to_be_visible()
