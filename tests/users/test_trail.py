"""The trail of users: one event for each that is created, renamed, given a role or status, or removed, by any door."""

import io
import json
import sys

import pytest
from django.core.management import call_command

from config.models import AuditEvent
from tests.conftest import PASSWORD, Caller, with_bearer_of, with_key
from tests.users.test_admin_import import choose, confirm
from users.models import User


@pytest.fixture
def trail(chief):
    """Gives the events about users since the test began: each with its user, and its facts."""
    last = AuditEvent.objects.order_by("id").last()
    before = last.pk if last else 0

    def read():
        events = AuditEvent.objects.filter(pk__gt=before, event__startswith="user.").order_by("id")
        return [(event.event.removeprefix("user."), event.user_id, event.facts) for event in events]

    return read


def history_of(pages, user):
    page = pages.get(f"/admin/config/auditevent/?user__id__exact={user.pk}")
    assert page.status_code == 200
    return [event.event for event in page.context["cl"].result_list]


@pytest.mark.parametrize(("sign_in", "kind"), [(with_bearer_of, "jwt"), (with_key, "api_key")])
def test_writes_of_the_api_say_who_did_what_to_whom(chief, pages, trail, sign_in, kind):
    more = ["email_is_trusted"] if kind == "api_key" else []
    caller, did = sign_in(chief), {"by": chief.pk, "credential": kind}
    made = User(pk=caller.post("/users", {"name": "Ann", "email": "ann@example.com"}).data["id"])
    caller.patch(f"/users/{made.pk}", {"name": "Ann Lee"})
    caller.patch(f"/users/{made.pk}", {"name": "Ann Lee", "status": "active"})
    caller.put(f"/users/{made.pk}", {"name": "Anna", "email": "anna@example.com", "status": "inactive"})
    assert caller.patch(f"/api/v2/users/{made.pk}?dry_run=true", {"name": "Nobody"}).status == 200
    assert trail() == [
        ("created", made.pk, {"role": "user", **did}),
        ("changed", made.pk, {"changed": ["name"], **did}),
        ("changed", made.pk, {"changed": ["name", "email", "status", *more], "status": "inactive", **did}),
    ]
    assert history_of(pages, made) == ["user.changed", "user.changed", "user.created"]
    assert caller.delete(f"/users/{made.pk}").status == 204
    # What is told of the user goes with it, but for the removal.
    assert trail() == [("removed", None, {"removed": made.pk, **did})]


def test_writes_to_oneself_and_by_nobody_say_so(make_user, trail, settings):
    own = make_user(name="Own", password=PASSWORD)
    caller = with_bearer_of(own)
    caller.patch(f"/users/{own.pk}", {"name": "New"})
    caller.patch(f"/users/{own.pk}", {"password": "four other words instead", "current_password": PASSWORD})
    settings.OPEN_SIGNUP = True
    signed_up = Caller().post("/users", {"name": "Ann", "email": "ann@example.com"}).data["id"]
    assert trail() == [
        ("changed", own.pk, {"changed": ["name"], "by": own.pk, "credential": "jwt"}),
        ("created", signed_up, {"role": "user", "credential": "none"}),
    ]


def test_writes_of_the_admin_say_who_did_them(chief, pages, trail):
    did = {"by": chief.pk, "credential": "session"}
    row = {"name": "Ann", "email": "ann@example.com", "role": "user", "status": "active", "usable_password": "false"}
    assert pages.post("/admin/users/user/add/", row).status_code == 302
    made = User.objects.get(name="Ann")
    form = pages.get(f"/admin/users/user/{made.pk}/change/").context["adminform"].form
    versioned = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert pages.post(f"/admin/users/user/{made.pk}/change/", {**versioned, "role": "support"}).status_code == 302
    chosen = {"action": "deactivate", "_selected_action": [made.pk], "post": "yes"}
    assert pages.post("/admin/users/user/", chosen).status_code == 302
    assert trail() == [
        ("created", made.pk, {"role": "user", **did}),
        ("changed", made.pk, {"changed": ["role"], "role": "support", **did}),
        ("changed", made.pk, {"changed": ["status"], "status": "inactive", **did}),
    ]
    assert pages.post(f"/admin/users/user/{made.pk}/delete/", {"post": "yes"}).status_code == 302
    assert trail() == [("removed", None, {"removed": made.pk, **did})]


def test_users_that_are_added_together_have_one_event(chief, pages, trail):
    lines = "\n".join(json.dumps({"name": "N", "email": f"n{number}@example.com"}) for number in range(3))
    answer = with_key(chief)("POST", "/api/v2/users", raw=lines.encode(), content_type="application/x-ndjson")
    bulk = [line["data"]["id"] for line in answer.data]
    confirm(pages, choose(pages, "name,email\nA,a@example.com\nB,b@example.com\n"))
    imported = [*User.objects.filter(name__in="AB").order_by("pk").values_list("pk", flat=True)]
    assert trail() == [
        ("created", None, {"users": bulk, "by": chief.pk, "credential": "api_key"}),
        ("created", None, {"users": imported, "by": chief.pk, "credential": "session"}),
    ]


def test_command_says_that_it_was_one_and_prints_no_more_than_before(chief, pages, trail, monkeypatch, told):
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD))
    call_command("create_user", "ann@example.com", name="Ann", role="admin", stdout=io.StringIO())
    made = User.objects.get(name="Ann")
    assert trail() == [("created", made.pk, {"role": "admin", "credential": "command"})]
    assert (told(), history_of(pages, made)) == ([], ["user.created"])


def test_refused_write_leaves_no_event(chief, trail):
    caller = with_bearer_of(chief)
    assert caller.post("/users", {"name": "Ann", "email": chief.email}).status == 409
    assert caller.patch(f"/users/{chief.pk}", {"name": "New", "role": "user"}).status == 409
    assert caller.delete(f"/users/{chief.pk}").status == 409
    assert trail() == []
