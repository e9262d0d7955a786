"""Exports that are made in the background, and fetched by whoever asked for them."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from config.admin import export, saved_exports
from config.management.expiry import get_expired_rows
from config.models import AuditEvent, SavedExport, SavedExportPart
from orders.models import Order
from posts.models import Post
from tests.admin.test_pages import signed_in
from users import services

ORDERS = "/admin/orders/order/export/"
USERS = "/admin/users/user/export/"


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(export, "MAX_EXPORT_ROWS", 5)
    monkeypatch.setattr(saved_exports, "PART_ROWS", 3)


@pytest.fixture
def orders(chief):
    return [Order.objects.create(user=chief, item=f"={number},\n'a'", qty=number + 1) for number in range(8)]


def ask(pages: Client, path: str, file_format: str = "csv") -> SavedExport:
    answer = pages.post(path, {"format": file_format, "saved": "Export all in the background"})
    assert answer.status_code == 302
    (saved,) = SavedExport.objects.filter(pk=answer.headers["Location"].split("/")[-3])
    return saved


def page_of(saved: SavedExport) -> str:
    return f"/admin/config/savedexport/{saved.pk}/change/"


def file_of(saved: SavedExport) -> str:
    return f"/admin/config/savedexport/{saved.pk}/file/"


def fetch(pages: Client, saved: SavedExport) -> bytes:
    answer = pages.get(file_of(saved))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/gzip")
    assert "no-store" in answer.headers["Cache-Control"]
    assert "Content-Encoding" not in answer.headers
    return gzip.decompress(answer.content)


def kill_after(parts: int) -> Any:
    """Ends a process as a kill does: what is not committed is lost, and nobody gives the export back."""
    left = iter(range(parts))

    def is_stopped() -> bool:
        if next(left, None) is None:
            raise SystemExit
        return False

    return is_stopped


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_saved_export_is_the_file_that_one_answer_would_be(pages, orders, monkeypatch, file_format):
    assert "Export all in the background" in pages.get(ORDERS).content.decode()
    saved = ask(pages, ORDERS, file_format)
    saved_exports.work()
    assert list(SavedExportPart.objects.values_list("number", flat=True)) == [0, 1, 2]
    monkeypatch.setattr(export, "MAX_EXPORT_ROWS", 8)
    assert "Export all in the background" not in pages.get(ORDERS).content.decode()
    whole = pages.post(ORDERS, {"format": file_format}).content
    assert fetch(pages, saved) == whole
    assert len(whole) > 300
    event = AuditEvent.objects.filter(event="rows.exported").first()
    assert event.facts == {"what": "orders", "rows": 8, "after": 0}


def test_empty_list_is_a_file_with_no_rows(pages):
    for file_format, content in (("csv", b"id,user_id,item,qty,created_at\r\n"), ("json", b"[]")):
        saved = ask(pages, ORDERS, file_format)
        saved_exports.work()
        assert fetch(pages, saved) == content


def test_saved_export_has_the_filters_of_the_list(pages, make_user):
    found = [make_user("support") for _ in range(4)]
    make_user("user")
    saved = ask(pages, f"{USERS}?role__exact=support", "json")
    assert saved.total == 4
    saved_exports.work()
    assert [row["id"] for row in json.loads(fetch(pages, saved))] == [user.pk for user in found]


def test_page_tells_how_far_it_is_until_the_file_is_there(pages, orders):
    saved = ask(pages, ORDERS)
    saved_exports.work(is_stopped=lambda: True)
    page = pages.get(page_of(saved))
    assert '<progress max="8" value="3" aria-label="Rows"></progress> 3 of 8 rows' in page.content.decode()
    assert page.headers["Refresh"] == "2"
    assert pages.get(file_of(saved)).status_code == 404
    # Of each user one at a time is made.
    assert ask(pages, USERS) == saved
    saved_exports.work()
    page = pages.get(page_of(saved))
    assert "finished: 8 rows" in page.content.decode()
    assert f'<a href="{file_of(saved)}">orders-{saved.pk}.csv.gz</a>' in page.content.decode()
    assert "Refresh" not in page.headers
    assert ask(pages, USERS) != saved


def test_export_of_a_process_that_was_killed_is_finished_by_another_one(pages, orders):
    saved = ask(pages, ORDERS)
    with pytest.raises(SystemExit):
        saved_exports.work(is_stopped=kill_after(1))
    # Nobody takes it while the other one may be at it.
    saved_exports.work()
    saved.refresh_from_db()
    assert (saved.rows, saved.finished_at, saved.parts.count()) == (6, None, 2)
    SavedExport.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    saved_exports.work()
    rows = [line for line in fetch(pages, saved).decode().split("\r\n") if line]
    assert len(rows) == 9
    assert saved.parts.count() == 3


def test_two_processes_at_one_export_add_each_row_once(pages, orders):
    saved = ask(pages, ORDERS)
    behind = saved_exports._take()
    SavedExport.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    saved_exports.work(is_stopped=lambda: True)
    page, request = saved_exports._open(behind)
    assert not saved_exports._add_part(behind, page, saved_exports._get_rows(page, request))
    saved.refresh_from_db()
    assert (saved.rows, saved.parts.count()) == (3, 1)


def test_nobody_else_sees_or_fetches_an_export(pages, orders, make_user):
    saved = ask(pages, ORDERS)
    saved_exports.work()
    for role in ("admin", "support"):
        other = signed_in(make_user(role))
        assert other.get(file_of(saved)).status_code == 404
        assert other.get(page_of(saved)).status_code == 302
        assert file_of(saved) not in other.get("/admin/config/savedexport/").content.decode()
    assert file_of(saved) in pages.get("/admin/config/savedexport/").content.decode()


@pytest.mark.parametrize("change", [{"role": "user"}, {"status": "inactive"}])
def test_who_may_no_longer_view_the_rows_neither_gets_nor_fetches_them(make_user, chief, orders, change):
    other = make_user("admin")
    client = signed_in(other)
    first = ask(client, ORDERS)
    saved_exports.work()
    second = ask(client, ORDERS)
    services.change(other, change)
    assert client.get(file_of(first)).status_code in {302, 403}
    saved_exports.work()
    second.refresh_from_db()
    assert (second.rows, second.failure) == (0, "Its user may not view these rows any more.")


def test_rows_that_are_gone_since_are_not_in_the_file(pages, make_user):
    author = make_user(name="Nameless")
    kept = make_user(name="Kept")
    for number in range(4):
        Post.objects.create(user=author if number % 2 else kept, title=f"T{number}")
    users = ask(pages, USERS, "json")
    saved_exports.work()
    posts = ask(pages, "/admin/posts/post/export/", "json")
    saved_exports.work()
    services.remove(author)
    names = [row["name"] for row in json.loads(fetch(pages, users))]
    assert names == ["Chief", "Kept"]
    assert [row["title"] for row in json.loads(fetch(pages, posts))] == ["T0", "T2"]


def test_filters_that_make_no_sense_any_more_end_the_export(pages, chief):
    saved = SavedExport.objects.create(user=chief, what="users.user", query="password__exact=x", format="csv")
    saved_exports.work()
    saved.refresh_from_db()
    assert saved.failure == "Its filters make no sense any more."
    assert "Its filters make no sense any more." in pages.get(page_of(saved)).content.decode()
    assert pages.get(file_of(saved)).status_code == 404


def test_export_is_kept_for_a_day(pages, orders):
    saved = ask(pages, ORDERS)
    saved_exports.work()
    (expired,) = [rows for name, rows in get_expired_rows(timezone.now()).items() if name == "saved exports"]
    assert not expired.exists()
    SavedExport.objects.update(requested_at=timezone.now() - timedelta(days=1, minutes=1))
    assert expired.get() == saved
    expired.delete()
    assert not SavedExportPart.objects.exists()
