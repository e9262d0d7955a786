"""The list of audit events: what happened is read in the list itself, and one kind of event is found among millions."""

from __future__ import annotations

import re

from django.db import connection
from django.test.utils import CaptureQueriesContext

from config import audit
from config.models import AuditEvent
from config.models.events import TYPES
from config.models.webhooks import PING
from tests.service import CHECKOUT
from users.links import Purpose

LIST = "/admin/config/auditevent/"


def test_list_is_filtered_by_event_along_its_index(pages):
    AuditEvent.objects.all().delete()
    for event in ("login", "login.failed", "login"):
        AuditEvent.objects.create(event=event)
    with CaptureQueriesContext(connection) as queries:
        page = pages.get(f"{LIST}?event=login.failed")
    assert [row.event for row in page.context["cl"].result_list] == ["login.failed"]
    # The index audit_events_event_id.
    assert any('ORDER BY "config_auditevent"."id" DESC' in query["sql"] for query in queries)
    assert 'href="?event=login.failed"' in pages.get(LIST).content.decode()


def test_every_event_that_is_recorded_is_offered():
    things = "|".join({event.partition(".")[0] for event in audit.EVENTS})
    call = re.compile(rf'\b_?record(?:_write)?\(\s*"([\w.]+)"|"((?:{things})\.\w+)"')
    apps = ("config", "users", "orders", "posts", "payments", "accounts")
    sources = [path for app in apps for path in (CHECKOUT / app).rglob("*.py") if path.name != "trail.py"]
    recorded = {"".join(names) for path in sources for names in call.findall(path.read_text())}
    recorded |= {f"{purpose}.{what}" for purpose in Purpose for what in ("requested", "used")}
    # Types of the feed and of deliveries, some of which look like events of the trail.
    recorded -= {PING, *TYPES} - {*audit.EVENTS}
    assert (recorded, len(recorded)) == ({*audit.EVENTS}, len(audit.EVENTS))


def test_facts_are_read_beside_the_event(pages, make_user):
    user = make_user()
    facts = {"door": "basic", "scopes": ["users:read", "<b>"], "by": 7}
    AuditEvent.objects.create(event="login.failed", user=user, facts=facts)
    page = pages.get(LIST).content.decode()
    columns = re.findall(r'class="(?:sortable )?column-(\w+)', page)
    assert columns.index("facts_text") == columns.index("event") + 2
    assert "door: basic, scopes: users:read &lt;b&gt;" in page
    assert 'by: <a href="/admin/users/user/7/change/">7</a>' in page
    assert f'<a href="/admin/users/user/{user.pk}/change/">{user.name}</a>' in page
