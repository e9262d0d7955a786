"""Events are dropped a week at a time, and whoever was not further is told."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from config.models import Event
from config.postgresql import events
from orders.models import Order
from tests.events.test_feed import V2, assert_expired

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("whole_feed")]

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def old(user, admin):
    """An event of a week long ago, and one of the days behind it, which have no partition; then those of today."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE config_event_20260105 PARTITION OF config_event"
            f" FOR VALUES FROM ('{MONDAY}') TO ('{MONDAY + events.PARTITION}')"
        )
    Event.objects.all().delete()
    for number, days in enumerate((0, 6, 9), 1):
        Event.objects.create(
            position=number,
            resource_id=7,
            user_id=user.user.pk,
            type="order.created",
            created_at=MONDAY + timedelta(days=days),
        )
    Order.objects.create(user=user.user, item="i", qty=1)
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS config_event_20260105")


def purge(*arguments):
    output = StringIO()
    call_command("purge", *arguments, stdout=output)
    return int(output.getvalue().partition("\nevents: ")[2].partition("\n")[0])


def get_partitions():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relid::regclass::text FROM pg_partition_tree('config_event') WHERE isleaf")
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.usefixtures("old")
def test_week_that_has_expired_is_dropped_and_cursors_from_before_with_it(admin):
    first, last, late, today = admin.get(V2).data
    assert purge("--dry-run") == 3
    assert "config_event_20260105" in get_partitions()
    assert purge() == 3
    assert "config_event_20260105" not in get_partitions()
    assert purge() == 0
    assert [event["id"] for event in admin.get(V2).data] == [today["id"]]
    for event in (first, last):
        assert_expired(admin, event["cursor"])
    # Whoever had all that was dropped has missed nothing.
    assert [event["id"] for event in admin.get(f"{V2}?cursor={late['cursor']}").data] == [today["id"]]


@pytest.mark.usefixtures("old")
def test_week_of_which_a_part_is_not_old_enough_stays(settings):
    age = timezone.now() - (MONDAY + events.PARTITION)
    settings.EVENT_RETENTION_DAYS = age.days + 1
    assert purge() == 0
    settings.EVENT_RETENTION_DAYS = age.days
    # The default partition is emptied by rows: what is there is younger.
    assert purge() == 2


def test_weeks_to_come_have_partitions_and_the_default_one_takes_the_others(user):
    names = sorted(get_partitions())
    assert len(names) >= 6
    with connection.cursor() as cursor:
        for name in names:
            if name != "config_event_default":
                cursor.execute(f"DROP TABLE {name}")
    Order.objects.create(user=user.user, item="i", qty=1)
    # This week stays with the default one, whose events are there already.
    assert purge() == 0
    assert len(get_partitions()) == 5
    assert Event.objects.filter(type="order.created").count() == 1
    Event.objects.all().delete()
    purge()
    assert get_partitions() == {*names}
