"""Each page of the admin, for administrators and for support, which may view and not change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model

from accounts.models import APIKey, LoginSession
from accounts.services import create_api_key
from config.models import AuditEvent, IdempotencyRecord, OutboxEntry, VersionUse, Webhook, WebhookDelivery
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.accounts.oauth.actors import register
from tests.conftest import PASSWORD, signed_in
from users.models import User
from users.services import remove

SECRET = "5ecre7"
DIGEST = SECRET.encode()
# Session, user, the rows with their total, the count of a table without row counts; two for each savepoint.
MAX_QUERIES = {"list": 8, "detail": 10, "history": 8, "delete": 8}
# On the page of a user: all totals of what belongs to it, and the latest rows of each model.
MAX_RELATED_QUERIES = 1 + 14


def create_rows(user: User, times: int) -> None:
    """Creates rows of each model in the admin, with a secret in each column that holds one."""
    now = timezone.now()
    application = register(redirect_uris="https://app.example.com/back").row
    for number in range(times):
        digest = f"{SECRET}{user.pk}-{number}"
        Order.objects.create(user=user, item="Tea", qty=1)
        Payment.objects.create(user=user, amount="1.00")
        post = Post.objects.create(user=user, title="A title", body="…")
        Comment.objects.create(user=user, post=post, text="A text")
        key, _ = create_api_key(user, name="A key")
        APIKey.objects.filter(pk=key.pk).update(digest=digest.encode())
        LoginSession.objects.create(
            user=user, password_digest=SECRET, refresh_digest=DIGEST, access_id=SECRET, expires_at=now
        )
        AuditEvent.objects.create(event="login", user=user)
        OutboxEntry.objects.create(kind="invitation", user=user, parameters={"state": SECRET})
        VersionUse.objects.create(day=now.date(), version=1, user=user, kind="api_key", credential=str(number), count=1)
        IdempotencyRecord.objects.create(
            user=user, operation="POST /payments", key=digest[len(SECRET) :], fingerprint=DIGEST, status=201, body="{}"
        )
        access = get_access_token_model().objects.create(
            user=user, application=application, token=digest, expires=now, scope="users:read"
        )
        get_refresh_token_model().objects.create(user=user, application=application, token=digest, access_token=access)
        get_grant_model().objects.create(
            user=user,
            application=application,
            code=digest,
            expires=now,
            code_challenge=SECRET,
            redirect_uri="https://x.y",
        )
        webhook = Webhook.objects.create(
            user=user, url="https://example.com/", types=["order.created"], scopes=[], version=2, secret=SECRET.encode()
        )
        WebhookDelivery.objects.create(webhook=webhook, type="order.created")
        LogEntry.objects.log_actions(user.pk, [user, post], ADDITION)


def pages() -> list[tuple[str, str]]:
    """Lists kind and path of the pages of each registered model; `{}` stands for the id of a row."""
    paths = []
    for model in admin.site._registry:
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        paths += [("list", base), ("detail", f"{base}{{}}/change/"), ("history", f"{base}{{}}/history/")]
        paths += [("delete", f"{base}{{}}/delete/")]
    return paths


def get_model(path: str) -> Any:
    _, _, app, name, *_ = path.split("/")
    return next(m for m in admin.site._registry if (m._meta.app_label, m._meta.model_name) == (app, name))


def count_queries(client: Client, path: str) -> tuple[int, Any]:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    return len(queries), answer


def get_addresses() -> list[tuple[str, str]]:
    """Kind and path of each page, with the id of the first row of its model."""
    return [(kind, path.format(get_model(path)._default_manager.order_by("pk").first().pk)) for kind, path in pages()]


def check_page(user: User, kind: str, path: str, answer: Any) -> None:
    """The page of one who is signed in shows neither a secret nor a digest."""
    assert answer.status_code == 200 or (kind, answer.status_code) == ("delete", 403), path
    page = answer.content.decode()
    assert SECRET not in page, path
    # Django shows administrators the first letters of a password's hash, and asterisks for the rest.
    assert user.password.rpartition("$")[2] not in page, path
    assert user.role == "admin" or "argon2" not in page, path


def test_query_count_does_not_grow_with_the_rows_and_no_page_shows_a_secret(make_user):
    chief = make_user("admin", password=PASSWORD)
    create_rows(chief, 1)
    client, addresses = signed_in(chief), get_addresses()
    # Read once a process.
    ContentType.objects.get_for_models(*apps.get_models())
    few = {path: count_queries(client, path)[0] for _, path in addresses}
    create_rows(make_user(), 3)
    for kind, path in addresses:
        many, answer = count_queries(client, path)
        check_page(chief, kind, path, answer)
        assert many == few[path], path
        has_related = kind == "detail" and get_model(path) is User
        assert many <= MAX_QUERIES[kind] + has_related * MAX_RELATED_QUERIES, path


def test_support_is_shown_no_secret_and_no_digest(make_user):
    support = make_user("support", password=PASSWORD)
    create_rows(support, 1)
    client = signed_in(support)
    for kind, path in get_addresses():
        check_page(support, kind, path, client.get(path))


def check_read_only(client: Client, model: Any, form: dict[str, str], actions: Sequence[str]) -> None:
    """No form and no action changes the first row, or how many there are."""
    row = model._default_manager.order_by("pk").first()
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    before = model._base_manager.count(), repr(model._base_manager.filter(pk=row.pk).values().get())
    for path in (f"{base}{row.pk}/change/", f"{base}{row.pk}/delete/", f"{base}add/"):
        assert client.post(path, {**form, "post": "yes"}).status_code == 403, path
    for action in actions:
        client.post(base, {"action": action, "_selected_action": [str(row.pk)], "post": "yes"})
    after = model._base_manager.count(), repr(model._base_manager.filter(pk=row.pk).values().get())
    assert after == before, base


def test_support_changes_nothing_and_is_offered_no_action(make_user):
    support = make_user("support")
    create_rows(support, 1)
    client = signed_in(support)
    form = {"name": "X", "title": "X", "text": "X", "status": "inactive", "amount": "9", "qty": "9"}
    for model, page in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert client.get(base).context["action_form"] is None, base
        check_read_only(client, model, form, [name for _, name, _ in page._get_base_actions()])


def test_read_only_models_are_not_changed_by_administrators(chief):
    create_rows(chief, 1)
    client = signed_in(chief)
    form = {"amount": "9.00", "item": "X", "qty": "9", "event": "X", "count": "9", "name": "X"}
    for model in (Order, Payment, AuditEvent, OutboxEntry, IdempotencyRecord, VersionUse, APIKey, LoginSession):
        check_read_only(client, model, form, ["delete_selected"])


def test_forged_form_fields_are_ignored(chief, make_user):
    user = make_user(password=PASSWORD)
    before = User.objects.values().get(pk=user.pk)
    form = {"name": "New", "email": user.email, "role": "user", "status": "active"}
    forged = {"password": "x", "removed_at": "2026-01-01", "row_version": "9", "id": "9", "created_at": "2020-01-01"}
    forged |= {"credentials_ended_at": "2026-01-01", "is_superuser": "on", "updated_at": "2020-01-01"}
    answer = signed_in(chief).post(f"/admin/users/user/{user.pk}/change/", {**form, **forged})
    assert answer.status_code == 302
    after = User.objects.values().get(pk=user.pk)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"name", "updated_at", "row_version"}
    assert after["row_version"] == before["row_version"] + 1
    assert after["updated_at"].year > 2020


@pytest.mark.parametrize("select_across", ["1", "true", "on"])
def test_action_on_too_many_rows_is_refused(chief, make_user, monkeypatch, select_across):
    monkeypatch.setattr("config.admin.base.MAX_ACTION_ROWS", 2)
    users = [make_user() for _ in range(3)]
    form = {"action": "deactivate", "_selected_action": str(users[0].pk), "select_across": select_across, "index": "0"}
    answer = signed_in(chief).post("/admin/users/user/", {**form, "post": "yes"}, follow=True)
    assert "Select fewer" in answer.content.decode()
    assert not User.objects.filter(status="inactive").exists()


def test_lists_name_users_and_times_name_their_zone(chief):
    Payment.objects.create(user=chief, amount="1.00")
    page = signed_in(chief).get("/admin/payments/payment/").content.decode()
    assert (
        f'<a href="/admin/users/user/{chief.pk}/change/">Chief</a><br><span class="quiet">{chief.email}</span>' in page
    )
    assert re.search(r'<td class="field-created_at nowrap">\d+ \w+ \d{4}, [\d:]{8}\u00a0UTC</td>', page)


def test_removed_user_is_no_link_in_a_list(chief, make_user):
    payer = make_user(name="Payer")
    Payment.objects.create(user=payer, amount="1.00")
    remove(payer)
    page = signed_in(chief).get("/admin/payments/payment/").content.decode()
    assert f'<td class="field-user_link">removed user {payer.pk}</td>' in page


def test_users_stand_first_in_the_sidebar(chief):
    page = signed_in(chief).get("/admin/").content.decode()
    apps = re.findall(r'class="app-([a-z0-9_]+) module', page)
    assert apps[:5] == ["users", "orders", "posts", "payments", "accounts"]


def test_form_of_a_new_user_speaks_of_no_single_sign_on(chief):
    page = signed_in(chief).get("/admin/users/user/add/").content.decode()
    assert "can sign in only after an administrator sets one" in page
    assert "Single Sign-On" not in page
