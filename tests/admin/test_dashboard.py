"""The dashboard on the first page of the admin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from config.api.versions.usage import uses
from config.models import AnswerCount, AuditEvent
from payments.models import Payment
from tests.conftest import signed_in
from users.models import User


@pytest.fixture(autouse=True)
def no_counts(db):
    uses.write()
    AnswerCount.objects.all().delete()


def get_series(client: Any) -> dict[str, Any]:
    answer = client.get("/admin/")
    assert answer.status_code == 200
    return {chart.title: series for chart, series in answer.context["charts"]}


def days_ago(days: int) -> datetime:
    return datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=days)


def test_payments_are_aggregated_by_day(chief):
    for days, amount in ((0, "0.10"), (0, "0.20"), (3, "9999999999.99"), (29, "1"), (30, "7")):
        Payment.objects.create(user=chief, amount=amount, created_at=days_ago(days))
    series = get_series(signed_in(chief))
    numbers, amounts = series["Payments"]["payments"], series["Amount paid"]["amount"]
    assert (numbers[-1], numbers[-4], numbers[0], sum(numbers), len(numbers)) == (2, 1, 1, 4, 30)
    assert (amounts[-1], amounts[-4]) == (Decimal("0.30"), Decimal("9999999999.99"))


def test_sign_ups_and_failed_logins_are_counted(chief, make_user):
    user = make_user()
    User.objects.filter(pk=user.pk).update(created_at=days_ago(2))
    AuditEvent.objects.create(event="login.failed", user=user)
    AuditEvent.objects.create(event="login", user=user)
    series = get_series(signed_in(chief))
    assert (series["Sign-ups"]["users"][-3], series["Sign-ups"]["users"][-1]) == (1, 1)
    assert series["Failed sign-ins"]["failed sign-ins"][-1] == 1


def test_answers_are_counted_by_version_and_status(chief, nobody, admin):
    for path in ("/api/v1/users", "/api/v2/users", "/api/v2/nothing"):
        nobody.get(path)
    admin.get("/api/v2/users")
    uses.write()
    assert set(AnswerCount.objects.values_list("version", "status", "count")) == {
        (1, 401, 1),
        (2, 401, 1),
        (2, 404, 1),
        (2, 200, 1),
    }
    series = get_series(signed_in(chief))
    assert (series["Errors"]["rejected (4xx)"][-1], series["Errors"]["failed (5xx)"][-1]) == (3, 0)
    assert (series["Version usage"]["version 1"][-1], series["Version usage"]["version 2"][-1]) == (1, 3)
    admin.get("/api/v2/users")
    uses.write()
    assert AnswerCount.objects.get(version=2, status=200).count == 2


def test_totals_and_their_breakdown_match_the_rows(chief, make_user):
    make_user("support", status="inactive")
    answer = signed_in(chief).get("/admin/")
    users = next(figure for figure in answer.context["totals"] if figure["opts"].model is User)
    assert users["total"] == 2
    assert '<a href="/admin/users/user/?role__exact=support">support: 1</a>' in answer.content.decode()
    assert users["breakdown"] == {"role": {"admin": 1, "support": 1}, "status": {"active": 1, "inactive": 1}}
