"""The sign-in page, and the applications that one has authorised."""

from collections.abc import Callable

from playwright.sync_api import Page, expect


def test_sign_in_page(page: Page, look: Callable[[Page, str], None]) -> None:
    page.goto("/session/login")
    expect(page.get_by_label("Email")).to_be_focused()
    look(page, "sign-in")


def test_wrong_password_is_told_beside_the_form(
    page: Page, administrator: tuple[str, str], look: Callable[[Page, str], None]
) -> None:
    page.goto("/session/login")
    page.get_by_label("Email").fill(administrator[0])
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    look(page, "sign-in-refused")


def test_who_signed_in_sees_the_authorised_applications(signed_in: Page, look: Callable[[Page, str], None]) -> None:
    signed_in.goto("/oauth/grants")
    expect(signed_in.get_by_role("heading", level=1)).to_be_visible()
    look(signed_in, "grants")
