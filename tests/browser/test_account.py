"""A person forgets the password, gets in by mail, sees what is theirs, and leaves."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watch
from tests.browser.test_sign_in import sign_in
from tests.service import Service, ask, wait_for

ANN = ("ann.forgets@example.com", "four other words instead")


def read_link(service: Service, email: str) -> str:
    """The link in the file of the message to an email."""
    folder = Path(service.copy.folder / ".data/mail")

    def find() -> list[str]:
        texts = [file.read_text() for file in folder.glob("*.eml")]
        return [re.search(r"https?://\S+", text)[0] for text in texts if f"To: {email}" in text]  # type: ignore[index]

    wait_for(find)
    (link,) = find()
    return link


@pytest.fixture
def ann(service: Service, api_key: str, browser: Browser) -> Iterator[Page]:
    """Another browser of a user."""
    added = {"name": "Ann", "email": ANN[0], "password": "four plain words here"}
    assert ask(service, "/users", "POST", added, X_API_Key=api_key).status == 201
    page = browser.new_page(base_url=service.url, user_agent="The other browser")
    yield page
    page.close()


def test_person_who_forgot_the_password_gets_in_and_leaves(
    page: Page, service: Service, ann: Page, watch: Watch, look: Callable[[Page, str], None]
) -> None:
    page.goto("/session/login")
    page.get_by_role("link", name="Forgot your password?").click()
    look(page, "forgotten")
    page.get_by_label("Email").fill(ANN[0])
    page.get_by_role("button", name="Send link").click()
    expect(page.get_by_role("heading", name="Check your email")).to_be_visible()
    look(page, "forgotten-sent")
    link = read_link(service, ANN[0])
    page.goto(link)
    look(page, "reset")
    watch.expected = {400, 404}
    for password, heading in (("12345678", "New password"), (ANN[1], "Your password is set")):
        page.get_by_label("New password").fill(password)
        page.get_by_role("button", name="Set password").click()
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("This link has expired")
    look(page, "reset-expired")

    for each in (page, ann):
        each.goto("/session/login?next=/session/account")
        sign_in(each, ANN)
        expect(each.get_by_role("heading", name="Your account", exact=True)).to_be_visible()
    page.reload()
    look(page, "account")
    rows = page.get_by_role("listitem").filter(has=page.get_by_role("button", name="End this session"))
    expect(rows).to_have_count(2)
    rows.filter(has_text="The other browser").get_by_role("button").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("this session")
    ann.reload()
    expect(ann.get_by_role("heading", name="Sign in")).to_be_visible()

    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download your data").click()
    lines = [json.loads(line) for line in Path(downloading.value.path()).read_bytes().splitlines()]
    assert downloading.value.suggested_filename.endswith(".ndjson")
    assert (lines[0]["kind"], lines[0]["data"]["email"]) == ("user", ANN[0])
    for password, heading in (("wrong", "Your account"), (ANN[1], "A REST API for users")):
        page.get_by_label("Your password").fill(password)
        page.get_by_role("button", name="Delete my account").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    refused = ask(service, "/api/login", "POST", dict(zip(("email", "password"), ANN, strict=True)))
    assert refused.status == 401
