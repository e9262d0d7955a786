"""The pages as pictures, which are kept in the folder beside this file: a page that breaks looks different.

`make pictures` (this module) takes them anew, and those of the README. Tests compare, and never write one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import psycopg
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from psycopg import sql

from tests.browser.chromium import FLAGS, find_chromium
from tests.service import Service, get_database_url, temporary_copy

FOLDER = Path(__file__).resolve().parent / "pictures"
README_FOLDER = Path(__file__).resolve().parents[2] / "docs/pictures"
WIDTHS: Mapping[int, int] = {1440: 900, 390: 844}
SCHEMES = ("light", "dark")
PAGES = {
    "landing": "/",
    "guide": "/docs/first-request",
    "versions": "/docs/versions",
    "reference": "/docs",
    "operation": "/docs#/payments/payments_create",
    "list": "/api/v2/users?limit=15&page=2",
    "bounded": "/api/v2/orders?created_at%5Bgte%5D=2026-06-01T00:00:00Z&limit=5",
    "resource": "/api/v2/posts/3",
    "deprecated": "/api/v1/payments/7",
    "refused": "/api/v2/users?sort=password",
    "applications": "/oauth/grants",
    "admin-overview": "/admin/",
    "admin-users": "/admin/users/user/?q=m",
    "admin-user": "/admin/users/user/12/change/",
    "admin-payments": "/admin/payments/payment/",
}
README_PAGES = ("list", "operation")
# The first user of the demo data, which otherwise ends when the service is started first.
BEGINNING = datetime(2024, 5, 1, tzinfo=UTC)
TIMES = [
    *(
        ("created_at", table)
        for table in ("users_user", "orders_order", "payments_payment", "posts_post", "posts_comment")
    ),
    *(("updated_at", table) for table in ("users_user", "posts_post", "posts_comment")),
]
# The same letters on every machine, and nothing of today.
STYLE = """
:root { --sans: "DejaVu Sans", "Noto Sans CJK SC", sans-serif; --code: "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace; }
.charts, .comparisons { visibility: hidden; }
"""  # noqa: E501 - a line of CSS
SAME_PORT = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const anyPort = /127[.]0[.]0[.]1:[0-9]+/g
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(anyPort, "127.0.0.1:8000")
}"""


@contextmanager
def served_demo() -> Iterator[tuple[Service, str]]:
    """The service with demo data of fixed times, and the administrator's password."""
    with temporary_copy("service") as copy:
        service = Service(copy)
        try:
            with psycopg.connect(get_database_url(copy), autocommit=True) as database:
                # Without the triggers, which would note when.
                database.execute("SET session_replication_role = replica")
                (first,) = database.execute("SELECT min(created_at) FROM users_user").fetchone() or ()
                # The administrator is as old as the service.
                database.execute(
                    "UPDATE users_user SET created_at = %(at)s, updated_at = %(at)s WHERE id > 250", {"at": first}
                )
                for column, table in TIMES:
                    moved = sql.SQL("UPDATE {0} SET {1} = date_trunc('minute', {1} + %s)")
                    database.execute(moved.format(sql.Identifier(table), sql.Identifier(column)), [BEGINNING - first])
            told = dict(line.split(": ", 1) for line in service.lines if ": " in line)
            yield service, told["Password"]
        finally:
            service.stop()


@contextmanager
def signed_in_page(browser: Browser, service: Service, password: str, width: int, scheme: str) -> Iterator[Page]:
    context = browser.new_context(
        base_url=service.url,
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of its literals
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        # For the style below.
        bypass_csp=True,
    )
    context.add_init_script("crypto.randomUUID = () => '8e03978e-40d5-43e8-bc93-6894a57f9324'")
    page = context.new_page()
    page.goto("/session/login")
    page.get_by_label("Email").fill("admin@example.com")
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    yield page
    context.close()


def take(page: Page, name: str) -> Image.Image:
    """The first screen of a page."""
    if name == "landing":
        # Signed in, it shows the beginning of a key.
        page.context.clear_cookies()
    page.goto("about:blank")
    page.goto(PAGES[name])
    if name == "operation":
        expect(page.locator(".opblock .responses-table").first).to_be_visible(timeout=30_000)
    if name == "reference":
        expect(page.locator(".index a").first).to_be_attached(timeout=30_000)
    page.add_style_tag(content=STYLE)
    page.evaluate(SAME_PORT)
    page.evaluate("scrollTo(0, 0)")
    page.evaluate("document.fonts.ready")
    return Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")


def take_all(browser: Browser, service: Service, password: str) -> Iterator[tuple[str, Image.Image]]:
    """Each picture under its name, at its whole size."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            with signed_in_page(browser, service, password, width, scheme) as page:
                # The landing page last, which forgets the session.
                for name in sorted(PAGES, key="landing".__eq__):
                    yield f"{name}-{width}-{scheme}", take(page, name)


def shrink(picture: Image.Image) -> Image.Image:
    """Half as wide and high: small enough to be kept, and blind to how a letter is smoothed."""
    return picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.BOX)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    README_FOLDER.mkdir(exist_ok=True)
    with served_demo() as (service, password), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        for name, picture in take_all(browser, service, password):
            shrink(picture).save(FOLDER / f"{name}.webp", quality=70, method=6)
            page, width, scheme = name.rsplit("-", 2)
            if page in README_PAGES and width == "1440":
                picture.save(README_FOLDER / f"{page}-{scheme}.webp", quality=80, method=6)
        browser.close()


if __name__ == "__main__":
    main()
