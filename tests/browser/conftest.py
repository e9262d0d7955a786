"""A real browser, and the service with a million users as a person meets it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from tests.browser.chromium import FLAGS, NAMES, find_chromium
from tests.service import Copy, Service, temporary_copy

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE.parents[1] / "test-artefacts"
AXE = HERE / "node_modules/axe-core/axe.min.js"
USERS = 1_000_000
UNSEEN_TEXTS = """[...document.querySelectorAll("a, button, label, summary")]
  .filter((one) => one.checkVisibility() && one.innerText.trim())
  .filter((one) => getComputedStyle(one).color === getComputedStyle(one).backgroundColor)
  .map((one) => one.outerHTML.slice(0, 200))"""


def pytest_configure(config: pytest.Config) -> None:
    if not find_chromium():
        pytest.exit(f"There is no Chromium: install one ({' or '.join(NAMES)}), or say where it is: CHROMIUM=/path", 1)


@pytest.fixture(scope="session")
def copy() -> Iterator[Copy]:
    with temporary_copy("service") as made:
        yield made


@pytest.fixture(scope="session")
def service(copy: Copy) -> Iterator[Service]:
    """The service with the demo data and a million users, each with an order."""
    running = Service(copy)
    try:
        command = (".venv/bin/python", "manage.py", "seed", "--users", str(USERS), "--orders-per-user", "1")
        seeding = copy.start(*command)
        _, errors = seeding.communicate(timeout=600)
        assert seeding.returncode == 0, errors
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def administrator(service: Service) -> tuple[str, str]:
    """The email and the password that the first start printed."""
    told = dict(line.split(": ", 1) for line in service.lines if ": " in line)
    return told["Administrator"], told["Password"]


@pytest.fixture(scope="session")
def api_key(service: Service) -> str:
    """The administrator's, that the first start printed."""
    return next(line.partition(": ")[2] for line in service.lines if line.startswith("API key: "))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work as root.
        launched = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        yield launched
        launched.close()


class Watch:
    """What a page must not do.

    Attributes:
        faults: errors on its console, exceptions in its scripts, requests to other hosts.
        expected: answers of the service that the test provokes, which Chromium tells on the console: `412` for one.
        hosts: those that may be asked.
    """

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.faults: list[str] = []
        self.expected: set[int] = set()
        self.hosts = {urlsplit(origin).netloc}
        context.on("console", self._console)
        context.on("weberror", lambda error: self.faults.append(f"exception: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(
            f"status of {code} " in message.text for code in self.expected
        ):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob", "about"} and address.netloc not in self.hosts:
            self.faults.append(f"request to another host: {request.url}")


@pytest.fixture
def context(browser: Browser, service: Service) -> Iterator[BrowserContext]:
    """A browser without cookies; no second one shares them."""
    made = browser.new_context(base_url=service.url, viewport={"width": 1280, "height": 900}, locale="en-GB")
    made.set_default_timeout(10_000)
    yield made
    made.close()


@pytest.fixture
def watch(context: BrowserContext, service: Service) -> Iterator[Watch]:
    watching = Watch(context, service.url)
    yield watching
    assert watching.faults == []


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    return context.new_page()


@pytest.fixture
def look(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Keeps a picture of a page, and lets axe-core find what keeps people from using it."""

    def look(page: Page, name: str) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)
        page.evaluate(AXE.read_text())
        # It would copy style sheets that import others into inline ones, which the policy refuses.
        found = page.evaluate("axe.run(document, {preload: false})")["violations"]
        faults = [
            f"{fault['id']}: {fault['help']}: {[node['html'][:200] for node in fault['nodes'][:5]]}" for fault in found
        ]
        assert faults == []
        # axe-core takes a text in the colour of its ground for one that is hidden on purpose.
        assert page.evaluate(UNSEEN_TEXTS) == []

    return look


@pytest.fixture
def signed_in(page: Page, administrator: tuple[str, str]) -> Page:
    """A page of the administrator, who came through the sign-in page."""
    email, password = administrator
    page.goto("/session/login")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    return page
