"""The figures that the admin begins with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.api.versions.usage import uses
from config.models.resource import AnswerCount, AuditEvent, DayFigure
from config.templatetags.figures import _round_up
from payments.models import Payment
from tests.admin.test_pages import signed_in
from users.models import User


@pytest.fixture(autouse=True)
def nothing_counted(db):
    uses.write()
    AnswerCount.objects.all().delete()


@pytest.fixture
def chief(make_user: Any) -> User:
    return make_user("admin")


def charts(client: Any) -> dict[str, Any]:
    answer = client.get("/admin/")
    assert answer.status_code == 200
    return {chart.title: chart.series for chart in answer.context["charts"]}


def days_ago(days: int) -> datetime:
    return datetime.now(UTC).replace(hour=12, minute=0) - timedelta(days=days)


def test_payments_are_summed_by_day(chief):
    for days, amount in ((0, "0.10"), (0, "0.20"), (3, "9999999999.99"), (29, "1"), (30, "7")):
        Payment.objects.create(user=chief, amount=amount, created_at=days_ago(days))
    seen = charts(signed_in(chief))
    numbers, amounts = seen["Payments"]["payments"], seen["Amount paid"]["amount"]
    assert (numbers[-1], numbers[-4], numbers[0], sum(numbers), len(numbers)) == (2, 1, 1, 4, 30)
    assert (amounts[-1], amounts[-4]) == (Decimal("0.30"), Decimal("9999999999.99"))


def test_days_that_are_over_are_counted_once_and_the_present_one_each_time(chief):
    Payment.objects.create(user=chief, amount="1", created_at=days_ago(3))
    client = signed_in(chief)
    assert sum(charts(client)["Payments"]["payments"]) == 1
    assert 27 <= DayFigure.objects.filter(name="payments").count() <= 29
    Payment.objects.create(user=chief, amount="1")
    with CaptureQueriesContext(connection) as queries:
        assert sum(charts(client)["Payments"]["payments"]) == 2
    (counted,) = [query["sql"] for query in queries if "payments_payment" in query["sql"] and "SUM" in query["sql"]]
    assert (timezone.now() - timedelta(days=3)).strftime("%Y-%m-%d") not in counted


def test_sign_ups_and_failed_logins_are_counted(chief, make_user):
    user = make_user()
    User.objects.filter(pk=user.pk).update(created_at=days_ago(2))
    AuditEvent.objects.create(event="login.failed", user=user)
    AuditEvent.objects.create(event="login", user=user)
    seen = charts(signed_in(chief))
    assert (seen["Sign-ups"]["users"][-3], seen["Sign-ups"]["users"][-1]) == (1, 1)
    assert seen["Failed log-ins"]["failed log-ins"][-1] == 1


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
    seen = charts(signed_in(chief))
    assert (seen["Errors"]["refused (4xx)"][-1], seen["Errors"]["failed (5xx)"][-1]) == (3, 0)
    assert (seen["Use of versions"]["version 1"][-1], seen["Use of versions"]["version 2"][-1]) == (1, 3)
    admin.get("/api/v2/users")
    uses.write()
    assert AnswerCount.objects.get(version=2, status=200).count == 2


def test_totals_are_those_of_the_rows(chief, make_user):
    make_user("support", status="inactive")
    answer = signed_in(chief).get("/admin/")
    users = next(figure for figure in answer.context["totals"] if figure.name == "Users")
    assert (users.total, users.url) == (2, "/admin/users/user/")
    assert users.breakdown == {"role": {"admin": 1, "support": 1}, "status": {"active": 1, "inactive": 1}}


def test_charts_are_told_to_those_who_do_not_see_them(chief):
    page = signed_in(chief).get("/admin/").content.decode()
    told = ('role="img"', "<desc", '<th scope="col">Day', "as a table</summary>", '<figure class="chart">')
    assert {page.count(part) for part in told} == {6}
    assert "style=" not in page


@pytest.mark.parametrize(
    ("greatest", "top"),
    [(0, 2), (2, 2), (3, 4), (5, 10), (10, 10), (11, 20), (999, 1000), (1001, 2000), (Decimal("41.5"), 100)],
)
def test_axis_ends_in_a_round_number(greatest, top):
    assert _round_up(greatest) == top
