"""The pages share one shell: light and dark, on a phone and on a wide screen, and every door leads on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

Look = Callable[[Page, str], None]
PAGES = {
    "landing": "/",
    "guide": "/docs/first-request",
    "versions": "/docs/versions",
    "reference": "/docs",
    "list": "/api/v2/users?limit=5",
    "deprecated": "/api/v1/posts?limit=3",
    "applications": "/oauth/grants",
    "admin-overview": "/admin/",
    "admin-user": "/admin/users/user/12/change/",
    "admin-removal": "/admin/users/user/12/delete/",
    "admin-audit": "/admin/config/auditevent/",
}
DOORS = ["Guide", "Reference", "Browse", "Admin"]
# What axe-core does not see: a cut button, a table that is cut without a sign of it, a pale placeholder.
FAULTS = """() => {
  const probe = document.body.appendChild(document.createElement("i"))
  probe.style.color = "var(--quiet)"
  const isCut = (one) => one.scrollWidth > one.clientWidth
  const isPale = (one) => {
    const { color, opacity } = getComputedStyle(one, "::placeholder")
    return color !== getComputedStyle(probe).color || opacity !== "1"
  }
  const found = [
    ...[...document.querySelectorAll("button, a.button")].filter((one) => one.checkVisibility() && isCut(one)),
    ...[...document.querySelectorAll(".rows, .table, .results, .scrolled")].filter(
      (one) => isCut(one) && !getComputedStyle(one).backgroundImage.includes("gradient")
    ),
    ...[...document.querySelectorAll("[placeholder]")].filter((one) => one.checkVisibility() && isPale(one)),
  ].map((one) => one.outerHTML.slice(0, 200))
  probe.remove()
  return found
}"""


def show(page: Page, path: str) -> None:
    page.goto(path)
    if path == "/docs":
        expect(page.locator(".index a").first).to_be_attached(timeout=30_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_are_read_in_light_and_dark_on_phone_and_desktop(
    signed_in: Page, look: Look, width: int, scheme: str
) -> None:
    signed_in.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its literals
    signed_in.set_viewport_size({"width": width, "height": 900})
    for name, path in PAGES.items():
        show(signed_in, path)
        doors = signed_in.get_by_role("navigation", name="Service", exact=True).get_by_role("link")
        assert doors.all_inner_texts() == DOORS, name
        assert signed_in.get_by_role("banner").bounding_box()["height"] < 100, name  # type: ignore[index]
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= width, name
        assert signed_in.evaluate(FAULTS) == [], name
        if name == "reference":
            # It is longer than the screen of a phone.
            assert signed_in.locator(".index").evaluate("index => index.open") == (width == 1440)
        if name in {"landing", "versions"}:
            assert signed_in.locator(".stacked").evaluate("table => table.scrollWidth <= table.parentNode.clientWidth")
        look(signed_in, f"shell-{name}-{width}-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sign_in_leads_to_the_landing_page_and_every_door_opens(
    page: Page, administrator: tuple[str, str], look: Look, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its literals
    page.goto("/")
    look(page, f"shell-anonymous-{scheme}")
    page.get_by_role("banner").get_by_role("link", name="Sign in").click()
    look(page, f"shell-sign-in-{scheme}")
    page.get_by_label("Email").fill(administrator[0])
    page.get_by_label("Password").fill(administrator[1])
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("A REST API")
    for door in DOORS:
        page.get_by_role("banner").get_by_role("link", name=door, exact=True).click()
        current = page.get_by_role("banner").locator("nav [aria-current]")
        expect(current).to_have_text(door)
    page.goto("/session/login")
    expect(page.get_by_role("heading", level=1)).to_contain_text("A REST API")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opened_operation_fits_on_a_phone(page: Page, look: Look, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of its literals
    page.set_viewport_size({"width": 390, "height": 800})
    show(page, "/docs")
    for method, name in (("post", "create"), ("get", "list")):
        page.goto(f"/docs#/users/users_{name}")
        block = page.locator(f".opblock-{method}")
        expect(block.locator(".responses-table")).to_be_visible(timeout=30_000)
        block.get_by_role("button", name="Try it out").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(FAULTS) == []
        # What is wider than the screen scrolls in its place, and is not cut.
        right = block.evaluate("block => block.getBoundingClientRect().right")
        assert right <= 390
        look(page, f"shell-operation-{method}-{scheme}")
