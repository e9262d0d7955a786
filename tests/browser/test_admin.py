"""What administrators do in the admin, beside a million users."""

from __future__ import annotations

import csv
import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import USERS
from tests.service import Service

Look = Callable[[Page, str], None]


def call(service: Service, method: str, path: str, key: str, body: Any = None) -> tuple[int, Any]:
    """A request to the API, as a client beside the browser sends it."""
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(service.url + path, data, headers, method=method)  # noqa: S310 - our own service
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


@pytest.fixture
def dashboard(page: Page, administrator: tuple[str, str]) -> Page:
    email, password = administrator
    page.goto("/admin/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page


@pytest.fixture
def needle(service: Service, api_key: str) -> tuple[int, str, str]:
    """Somebody among the million, with an API key: the id, the email and the key."""
    email = f"needle{time.time_ns()}@example.com"
    status, made = call(service, "POST", "/users", api_key, {"name": "Needle", "email": email})
    assert status == 201, made
    command = service.copy.start(".venv/bin/python", "manage.py", "create_api_key", email)
    key, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors
    return made["data"]["id"], email, key.strip()


def test_sign_in_of_the_admin(page: Page, look: Look) -> None:
    page.goto("/admin/")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    look(page, "admin-sign-in")


def test_dashboard_tells_what_there_is(dashboard: Page, look: Look) -> None:
    users = dashboard.locator(".totals > div").filter(has=dashboard.get_by_role("link", name="Users", exact=True))
    assert int(users.locator(".total").inner_text().replace(",", "")) >= USERS
    for title in ("Sign-ups", "Orders", "Payments", "Amount paid", "Errors", "Failed sign-ins", "Version usage"):
        expect(dashboard.get_by_role("img", name=title, exact=False).first).to_be_visible()
    dashboard.get_by_text("Errors as a table").click()
    expect(dashboard.locator(".chart table").filter(has_text="rejected (4xx)")).to_be_visible()
    look(dashboard, "admin-dashboard")
    dashboard.set_viewport_size({"width": 400, "height": 800})
    assert dashboard.evaluate("document.documentElement.scrollWidth") <= 400
    look(dashboard, "admin-dashboard-narrow")


def test_every_column_of_a_list_is_in_sight(dashboard: Page, service: Service, api_key: str) -> None:
    for path, body in (("payments", {"amount": 1.5}), ("password-resets", {"email": "zoe.lefevre@example.com"})):
        headers = {"X-API-Key": api_key, "Idempotency-Key": f"list-{path}"}
        assert dashboard.request.post(f"/api/v2/{path}", data=body, headers=headers).ok
    dashboard.set_viewport_size({"width": 1440, "height": 900})
    lists = [link.get_attribute("href") or "" for link in dashboard.locator("#content-main [class^=model-] th a").all()]
    assert len(lists) > 10
    for path in lists:
        dashboard.goto(path)
        results = dashboard.locator(".results")
        assert results.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)"), path


def test_user_among_a_million_is_found_deactivated_and_its_key_revoked(
    dashboard: Page, service: Service, needle: tuple[int, str, str], look: Look
) -> None:
    user_id, email, key = needle
    assert call(service, "GET", "/api/protected", key)[0] == 200
    dashboard.get_by_role("link", name="Users", exact=True).first.click()
    look(dashboard, "admin-users")
    dashboard.get_by_label("Search for").fill(email.upper())
    began = time.perf_counter()
    dashboard.get_by_role("button", name="Search").click()
    expect(dashboard.locator("p.paginator")).to_contain_text("1 user")
    assert time.perf_counter() - began < 3

    dashboard.locator("tr", has_text=email).get_by_role("checkbox").check()
    dashboard.get_by_role("combobox", name="Action").select_option(label="Deactivate")
    dashboard.get_by_role("button", name="Run").or_(dashboard.get_by_role("button", name="Go")).first.click()
    look(dashboard, "admin-deactivate")
    dashboard.get_by_role("button", name="Yes, I’m sure").click()
    expect(dashboard.get_by_text("Deactivated 1 users.")).to_be_visible()
    assert call(service, "GET", "/api/protected", key)[0] == 401

    dashboard.goto(f"/admin/users/user/{user_id}/change/")
    expect(dashboard.get_by_role("table", name="Latest audit events")).to_contain_text("api_key.created")
    look(dashboard, "admin-user")
    dashboard.set_viewport_size({"width": 390, "height": 800})
    assert dashboard.evaluate("document.documentElement.scrollWidth") <= 390
    look(dashboard, "admin-user-narrow")
    dashboard.set_viewport_size({"width": 1280, "height": 900})
    dashboard.get_by_role("link", name="All API keys", exact=True).click()
    dashboard.locator("tr", has_text=key[:12]).get_by_role("checkbox").check()
    dashboard.get_by_role("combobox", name="Action").select_option(label="Revoke")
    dashboard.get_by_role("button", name="Run").or_(dashboard.get_by_role("button", name="Go")).first.click()
    dashboard.get_by_role("button", name="Yes, I’m sure").click()
    expect(dashboard.get_by_text("Revoked 1 keys.")).to_be_visible()
    expect(dashboard.locator("tr", has_text=key[:12]).locator(".field-revoked_at")).not_to_have_text("-")
    look(dashboard, "admin-api-keys")


def test_thousand_users_are_imported_and_exported(dashboard: Page, tmp_path: Path, look: Look) -> None:
    mark = f"Import{time.time_ns()}"
    rows = [[f"{mark} {number}", f"{mark}-{number}@example.com".lower(), "user"] for number in range(1000)]
    good = [list(row) for row in rows]
    rows[10][1], rows[500][2], rows[998][0] = "no email", "boss", ""
    file = tmp_path / "users.csv"

    def choose(content: list[list[str]]) -> None:
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([["name", "email", "role"], *content])
        dashboard.goto("/admin/users/user/")
        dashboard.get_by_role("link", name="Import", exact=True).click()
        dashboard.get_by_label("CSV file").set_input_files(file)
        dashboard.get_by_role("button", name="Preview").click(timeout=60_000)

    choose(rows)
    expect(dashboard.get_by_role("alert")).to_contain_text("Nothing was imported: 3 of 1,000 lines have errors.")
    told = dashboard.locator("#content tbody tr")
    expect(told).to_have_count(3)
    for place, (line, column) in enumerate(((12, "email"), (502, "role"), (1000, "name"))):
        expect(told.nth(place)).to_contain_text(f"{line}")
        expect(told.nth(place)).to_contain_text(f"{column}: ")
    look(dashboard, "admin-import-refused")

    choose(good)
    look(dashboard, "admin-import-preview")
    dashboard.get_by_role("button", name="Import 1,000 users").click(timeout=60_000)
    expect(dashboard.get_by_text("Imported 1,000 users.")).to_be_visible()

    dashboard.get_by_label("Search for").fill(mark)
    dashboard.get_by_role("button", name="Search").click()
    expect(dashboard.locator("p.paginator")).to_contain_text("1,000 users")
    for chosen in ("Export CSV", "Export JSON"):
        with dashboard.expect_download() as download:
            dashboard.get_by_role("button", name=chosen).click()
        content = download.value.path().read_text("utf-8-sig")
        lines = content.splitlines()
        found = list(map(json.loads, lines)) if chosen == "Export JSON" else list(csv.DictReader(lines))
        assert [[row["name"], row["email"], row["role"]] for row in found] == good
        assert "password" not in content
