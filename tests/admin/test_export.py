"""Exports of change lists as CSV and as JSON by lines."""

from __future__ import annotations

import codecs
import csv
import io
import json
from decimal import Decimal
from itertools import product
from threading import BoundedSemaphore
from typing import Any

import pytest
from django.contrib import admin

from config.api import streams
from config.api.representation.formulas import escape_formula
from config.models import AuditEvent
from orders.models import Order
from payments.models import Payment
from tests.admin.test_pages import SECRET, create_rows
from tests.conftest import signed_in

USERS = "/admin/users/user/export/"
EXPORTABLE = [page for page in admin.site._registry.values() if getattr(page, "export_fields", ())]


def read_csv(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200
    # By the byte order mark Excel knows UTF-8.
    content = answer.getvalue()
    assert content.count(codecs.BOM_UTF8) == content.startswith(codecs.BOM_UTF8) == 1
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def read_lines(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200
    return [json.loads(line, parse_float=Decimal) for line in answer.getvalue().splitlines()]


@pytest.mark.parametrize("role", ["admin", "support"])
def test_file_has_export_fields_and_no_secret(make_user, role):
    user = make_user(role, password="four plain words here")
    create_rows(user, 2)
    client = signed_in(user)
    for page, (file_format, read) in product(EXPORTABLE, {"csv": read_csv, "ndjson": read_lines}.items()):
        path = f"/admin/{page.opts.app_label}/{page.opts.model_name}/export/"
        answer = client.post(path, {"format": file_format})
        assert answer.headers["Content-Disposition"].endswith(f'.{file_format}"')
        assert "no-store" in answer.headers["Cache-Control"]
        rows = read(answer)
        assert len(rows) == page.model.objects.count() > 0, path
        assert list(rows[0]) == list(page.export_fields), path
        assert SECRET not in answer.content.decode(), path
        assert "argon2" not in answer.content.decode(), path


def test_values_are_exact(pages, chief):
    Payment.objects.create(user=chief, amount="9999999999.99")
    order = Order.objects.create(user=chief, item='A "quoted", item\nin lines', qty=3)
    (payment,) = read_lines(pages.post("/admin/payments/payment/export/", {"format": "ndjson"}))
    assert (payment["amount"], payment["user_id"]) == (Decimal("9999999999.99"), chief.pk)
    assert payment["created_at"].endswith("Z")
    (row,) = read_csv(pages.post("/admin/orders/order/export/", {"format": "csv"}))
    assert (row["item"], row["qty"]) == (order.item, "3")


def test_formula_is_escaped_in_csv_and_unchanged_in_json(pages, chief):
    names = [
        *('=HYPERLINK("http://x","y")', "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\n=1", "\u00a0=1"),
        *("\uff1d1", "\uff0b1"),
    ]
    Order.objects.bulk_create(Order(user=chief, item=name, qty=1) for name in names)
    rows = read_csv(pages.post("/admin/orders/order/export/", {"format": "csv"}))
    assert {row["item"] for row in rows} == {f"'{name}" for name in names}
    rows = read_lines(pages.post("/admin/orders/order/export/", {"format": "ndjson"}))
    assert {row["item"] for row in rows} == {*names}


@pytest.mark.parametrize("cell", [None, "", "a=b", "1", 5, "a@example.com", "Ann-Marie"])
def test_cell_without_formula_is_not_escaped(cell):
    assert escape_formula(cell) == ("" if cell is None else str(cell))


def test_export_applies_filters_and_search_of_the_list(pages, make_user):
    match = make_user("support", name="Found")
    make_user("support", name="Other")
    make_user("user", name="Found, too")
    for query in ("role__exact=support&q=Found", f"q={match.pk}"):
        assert [row["id"] for row in read_csv(pages.post(f"{USERS}?{query}", {"format": "csv"}))] == [str(match.pk)]


@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
def test_large_export_is_a_stream_of_all_rows_in_the_order_of_ids(pages, chief, file_format):
    Order.objects.bulk_create(Order(user=chief, item="x" * 200, qty=1) for _ in range(450))
    answer = pages.post("/admin/orders/order/export/", {"format": file_format})
    assert answer.streaming
    rows = read_lines(answer) if file_format == "ndjson" else read_csv(answer)
    assert [int(row["id"]) for row in rows] == list(Order.objects.order_by("id").values_list("pk", flat=True))


@pytest.mark.parametrize(
    ("file_format", "content"), [("csv", "\ufeffid,user_id,item,qty,created_at\r\n"), ("ndjson", "")]
)
def test_export_without_rows_is_an_empty_table(pages, file_format, content):
    assert pages.post("/admin/orders/order/export/", {"format": file_format}).content.decode() == content


def test_export_that_finds_no_place_says_so_on_the_list(pages, monkeypatch):
    monkeypatch.setattr(streams, "_places", BoundedSemaphore(1))
    with streams._places:
        answer = pages.post(USERS, {"format": "csv"}, follow=True)
    assert "Too many streams are running. Try again." in answer.content.decode()


def test_export_of_an_unknown_format_is_404_and_by_get_405(pages):
    assert pages.post(USERS, {"format": "xlsx"}).status_code == 404
    assert pages.get(USERS).status_code == 405


@pytest.mark.parametrize("query", ["name__regex=(", "created_at__gte=x", "role__exact=%00"])
def test_export_with_an_invalid_filter_writes_nothing_and_says_so(pages, query):
    answer = pages.post(f"{USERS}?{query}", {"format": "csv"}, follow=True)
    assert "That filter or selection is not valid." in answer.content.decode()
    assert not AuditEvent.objects.filter(event="rows.exported").exists()


def test_list_exports_what_it_shows(pages):
    page = pages.get("/admin/users/user/?role__exact=admin").content.decode()
    assert 'action="/admin/users/user/export/?role__exact=admin"' in page


def test_export_is_in_the_audit_trail(pages, chief):
    pages.post(USERS, {"format": "csv"})
    event = AuditEvent.objects.get(event="rows.exported")
    assert (event.user, event.facts) == (chief, {"what": "users", "rows": 1})


def test_export_requires_staff(make_user):
    assert signed_in(make_user()).post(USERS, {"format": "csv"}).status_code == 302
