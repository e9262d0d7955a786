"""Webhooks over HTTP, and what becomes of events for them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from standardwebhooks import Webhook as Verifier

from config.erasure.eraser import erase
from config.models import AuditEvent, Webhook, WebhookDelivery, WebhookOutcome
from tests.conftest import wait_for_events, with_key
from tests.events.webhooks.conftest import TYPES, deliver, read_types, subscribe
from tests.events.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)

ORDER = {"item": "Tea", "qty": 2}


def run() -> None:
    """Sends what is due, also what is to be tried again."""
    WebhookDelivery.objects.filter(status="pending").update(due_at=timezone.now())
    deliver()


def test_secret_is_shown_once_and_verifies_what_is_sent(user, receiver):
    answer = subscribe(user, receiver, description="Mine")
    webhook, secret = answer.data, answer.data["secret"]
    path = answer.headers["Location"]
    assert path == f"/api/v2/webhooks/{webhook['id']}"
    assert {**user.get(path).data, "secret": secret} == webhook
    assert "secret" in user.patch(path, {"secret": secret}).error["details"][0]["field"]
    assert secret.encode() not in bytes(Webhook.objects.get().secret)
    order = user.post("/api/v2/orders", ORDER).data
    deliver()
    ((headers, body),) = receiver.messages
    sent = Verifier(secret).verify(body, headers)
    assert (sent["type"], sent["resource"]["id"]) == ("order.created", order["id"])
    assert (headers["content-type"], headers["webhook-id"]) == ("application/json", f"event-{sent['id']}")
    (delivery,) = user.get(f"{path}/deliveries?status=delivered").data
    (attempt,) = delivery["attempts"]
    assert (delivery["event_id"], attempt["status"], attempt["error"], attempt["body"]) == (sent["id"], 204, "", "")
    assert user.get(f"{path}/deliveries?status=pending").data == []
    assert user.get(f"{path}/deliveries/{delivery['id']}").data["attempts"] == [attempt]


def test_owner_gets_what_it_may_see_and_nothing_else(user, other, admin, receiver):
    subscribe(user, receiver)
    staff = Receiver()
    with staff.running():
        subscribe(admin, staff)
        for caller in (user, other):
            caller.post("/api/v2/orders", ORDER)
        other.post(f"/api/v2/users/{other.user.pk}/posts", {"title": "Hello"})
        user.post("/api/v2/payments", {"amount": "1.00"}, Idempotency_Key="k")
        deliver()
    assert sorted(read_types(receiver)) == ["order.created", "post.created"]
    assert sorted(read_types(staff)) == ["order.created", "order.created", "post.created"]


def test_removal_of_a_user_is_sent_to_all_that_may_read_its_posts(user, other, admin, make_user, receiver):
    subscribe(user, receiver, types=["user.removed"])
    scopes = {"webhooks:write", "events:read", "users:read"}
    subscribe(with_key(make_user(), scopes), receiver, types=["user.removed"])
    assert admin.delete(f"/api/v2/users/{other.user.pk}").status == 204
    deliver()
    (delivery,) = WebhookDelivery.objects.all()
    assert (delivery.status, delivery.webhook.user_id) == ("delivered", user.user.pk)
    assert [json.loads(body)["user_id"] for _, body in receiver.messages] == [other.user.pk]


def test_rights_are_those_of_the_moment_of_sending(make_user, receiver, other):
    support = make_user("support")
    subscribe(with_key(support), receiver, types=["order.created"])
    other.post("/api/v2/orders", ORDER)
    receiver.answer = lambda number: (500, {}, b"")
    run()
    type(support).objects.filter(pk=support.pk).update(role="user")
    run()
    assert read_types(receiver) == ["order.created"]
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempts[1]["status"]) == ("failed", None)
    assert "may not see it" in delivery.attempts[1]["error"]


@pytest.mark.parametrize("change", [{"status": "inactive"}, None])
def test_owner_that_is_deactivated_or_removed_gets_nothing_more(user, admin, receiver, change):
    subscribe(user, receiver)
    user.post("/api/v2/orders", ORDER)
    path = f"/api/v2/users/{user.user.pk}"
    assert (admin.patch(path, change) if change else admin.delete(path)).status in {200, 204}
    run()
    assert receiver.messages == []
    assert Webhook.objects.exists() == bool(change)


@pytest.mark.parametrize(
    ("scopes", "types", "lacking"),
    [
        ({"webhooks:write", "orders:read"}, ["order.created"], "events:read"),
        ({"webhooks:write", "events:read"}, ["order.created"], "orders:read"),
        ({"webhooks:write", "events:read", "posts:read"}, ["comment.created", "payment.created"], "payments:read"),
        ({"webhooks:read", "events:read", "orders:read"}, ["order.created"], "webhooks:write"),
    ],
)
def test_making_one_needs_the_scopes_of_what_is_sent(make_user, receiver, scopes, types, lacking):
    caller = with_key(make_user(), scopes)
    answer = caller.post("/webhooks", {"url": f"http://127.0.0.1:{receiver.port}/", "types": types})
    assert (answer.status, answer.code) == (403, "INSUFFICIENT_SCOPE")
    assert f'scope="{lacking}"' in answer.headers["WWW-Authenticate"]


def test_webhook_outlives_its_credential_with_its_scopes_and_version(make_user, receiver):
    caller = with_key(make_user(), {"webhooks:write", "webhooks:read", "events:read", "orders:read", "orders:write"})
    answer = subscribe(caller, receiver, types=["order.created"])
    path = answer.headers["Location"]
    refused = caller.patch(path, {"types": ["payment.created"]})
    assert (refused.status, refused.fields) == (400, {"types"})
    caller.post("/orders", ORDER)
    caller.user.api_keys.update(revoked_at=timezone.now())
    deliver()
    assert read_types(receiver) == ["order.created"]
    assert (answer.data["version"], "payments:read" in answer.data["scopes"]) == (2, False)


def test_hostile_url_is_refused_on_its_field(user, settings):
    settings.LOCAL = False
    for url in ("http://example.com/", "https://127.0.0.1/", "https://0x7f.1/", "https://a@example.com/"):
        answer = user.post("/webhooks", {"url": url, "types": TYPES})
        assert (answer.status, answer.fields) == (400, {"url"}), url


def test_both_secrets_sign_while_a_rotation_overlaps(user, other, admin, receiver):
    answer = subscribe(user, receiver)
    path, old = answer.headers["Location"], answer.data["secret"]
    assert [caller.post(f"{path}/rotations", {}).status for caller in (other, admin)] == [404, 403]
    rotated = user.post(f"{path}/rotations", {"overlap_seconds": 60})
    assert (rotated.status, rotated.headers["Location"]) == (201, path)
    new = rotated.data["secret"]
    user.post(f"{path}/pings")
    Webhook.objects.update(previous_until=timezone.now())
    deliver()
    Webhook.objects.update(previous_until=timezone.now() + timedelta(seconds=60))
    user.post(f"{path}/pings")
    deliver()
    (after_headers, after), (overlap_headers, overlap) = receiver.messages
    assert len(after_headers["webhook-signature"].split()) == 1
    Verifier(new).verify(after, after_headers)
    for secret in (old, new):
        Verifier(secret).verify(overlap, overlap_headers)


def test_ping_tells_where_its_delivery_is(user, receiver):
    answer = subscribe(user, receiver)
    receiver.answer = lambda number: (200, {}, b"pong")
    ping = user.post(f"{answer.headers['Location']}/pings")
    assert (ping.status, ping.data["status"], ping.data["type"]) == (202, "pending", "webhook.ping")
    deliver()
    delivery = user.get(ping.headers["Location"]).data
    assert (delivery["status"], delivery["attempts"][0]["body"]) == ("delivered", "pong")


def test_failure_is_tried_again_later_and_later_for_three_days(user, receiver):
    answer = subscribe(user, receiver)
    receiver.answer = lambda number: (503, {}, b"busy")
    user.post("/orders", ORDER)
    waits = []
    for _ in range(4):
        run()
        delivery = WebhookDelivery.objects.get()
        waits.append((delivery.due_at - timezone.now()).total_seconds())
        deliver()
    assert [len(receiver.messages), len({headers["webhook-id"] for headers, _ in receiver.messages})] == [4, 1]
    for wait, least in zip(waits, (5, 10, 20, 40), strict=True):
        assert least - 1 <= wait <= least * 1.25
    created = timezone.now() - timedelta(days=3)
    WebhookDelivery.objects.update(created_at=created)
    run()
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, len(delivery.attempts)) == ("failed", 5)
    receiver.answer = lambda number: (200, {}, b"")
    retry = f"{answer.headers['Location']}/deliveries/{delivery.pk}/retries"
    assert user.post(retry).status == 202
    deliver()
    assert WebhookDelivery.objects.get().status == "delivered"
    assert dict(WebhookOutcome.objects.values_list("label", "count")) == {"5xx": 5, "delivered": 1}


def test_retry_after_holds_the_whole_endpoint(user, receiver):
    subscribe(user, receiver)
    receiver.answer = lambda number: (429, {"Retry-After": "100"}, b"")
    user.post("/orders", ORDER)
    deliver()
    user.post("/orders", ORDER)
    run()
    assert len(receiver.messages) == 1
    wait = Webhook.objects.get().paused_until - timezone.now()
    assert 95 < wait.total_seconds() <= 100


@pytest.mark.parametrize(
    ("status", "failing_days", "reason"),
    [(410, 0, "410 Gone"), (500, 3, "3 days"), (500, 2, ""), (200, 3, "")],
)
def test_endpoint_that_is_gone_or_never_succeeds_is_disabled(user, receiver, status, failing_days, reason):
    path = subscribe(user, receiver).headers["Location"]
    receiver.answer = lambda number: (status, {}, b"")
    if failing_days:
        Webhook.objects.update(failing_since=timezone.now() - timedelta(days=failing_days))
    user.post("/orders", ORDER)
    deliver()
    webhook = user.get(path).data
    assert (webhook["status"], reason in webhook["disabled_reason"]) == ("disabled" if reason else "active", True)
    if not reason:
        return
    assert AuditEvent.objects.filter(event="webhook.disabled", user=user.user).count() == 1
    user.post("/orders", ORDER)
    run()
    assert len(receiver.messages) == 1
    assert user.post(f"{path}/pings").code == "CONFLICT"
    receiver.answer = lambda number: (200, {}, b"")
    assert user.patch(path, {"status": "active"}).data["disabled_reason"] == ""
    run()
    # What was meanwhile is for a replay.
    assert len(receiver.messages) == 2


@pytest.mark.parametrize("begins_with_received", [False, True])
def test_replay_sends_the_events_of_before_under_their_names(user, receiver, begins_with_received):
    path = subscribe(user, receiver).headers["Location"]
    for _ in range(3):
        user.post("/orders", ORDER)
    deliver()
    events = user.get("/api/v2/events?type=order.created&cursor=").data
    names = [f"event-{event['id']}" for event in events]
    received = {headers["webhook-id"]: json.loads(body)["cursor"] for headers, body in receiver.messages}
    assert sorted(received) == sorted(names)
    cursor = received[names[0]] if begins_with_received else ""
    receiver.messages.clear()
    assert user.post(f"{path}/replays", {"cursor": cursor}).status == 202
    deliver()
    again = names[1:] if begins_with_received else names
    assert sorted(headers["webhook-id"] for headers, _ in receiver.messages) == sorted(again)
    assert Webhook.objects.get().replay_position is None


def test_deliveries_of_an_endpoint_are_in_order_and_few_at_a_time(user, receiver, settings):
    settings.WEBHOOK_CONCURRENCY = 1
    subscribe(user, receiver)
    ids = [user.post("/api/v2/orders", ORDER).data["id"] for _ in range(7)]
    deliver()
    assert [json.loads(body)["resource"]["id"] for _, body in receiver.messages] == ids


def test_delivery_that_was_taken_is_left_to_others_when_its_lease_has_run_out(user, receiver):
    from config.events.webhooks import queue

    subscribe(user, receiver)
    user.post("/orders", ORDER)
    wait_for_events()
    assert len(queue.take()) == 1
    deliver()
    assert receiver.messages == []
    WebhookDelivery.objects.update(due_at=timezone.now())
    deliver()
    assert len(receiver.messages) == 1


def test_secret_of_another_key_of_the_service_still_signs(user, receiver, settings):
    secret = subscribe(user, receiver).data["secret"]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key of fifty characters, which is random 12"
    user.post("/orders", ORDER)
    deliver()
    ((headers, body),) = receiver.messages
    Verifier(secret).verify(body, headers)


def test_conditional_patch_is_not_stale_by_a_delivery(user, receiver):
    path = subscribe(user, receiver).headers["Location"]
    tag = user.get(path).headers["ETag"]
    receiver.answer = lambda number: (500, {}, b"")
    user.post("/orders", ORDER)
    deliver()
    assert Webhook.objects.get().failing_since
    assert user.get(path).headers["ETag"] == tag
    assert user.patch(path, {"description": "Other"}, If_Match=tag).status == 200
    assert user.patch(path, {"description": "Third"}, If_Match=tag).status == 412


def test_removal_of_a_user_takes_its_webhooks_and_what_receivers_have_answered_about_it(user, admin, receiver):
    subscribe(admin, receiver)
    subscribe(user, receiver)
    receiver.answer = lambda number: (200, {}, b"Thanks, Uma User")
    user.post("/orders", ORDER)
    deliver()
    assert ["Uma" in str(delivery.attempts) for delivery in WebhookDelivery.objects.all()] == [True, True]
    assert admin.delete(f"/users/{user.user.pk}").status == 204
    assert Webhook.objects.filter(user=user.user).count() == 0
    erase()
    assert Webhook.objects.including_erased().count() == 1
    (delivery,) = WebhookDelivery.objects.including_erased()
    assert (delivery.status, delivery.attempts) == ("delivered", [])


def test_removal_of_a_user_takes_what_receivers_have_repeated_of_its_requests(admin, make_user, user, receiver):
    subscribe(admin, receiver)
    leaving = with_key(make_user("admin"))
    receiver.answer = lambda number: (200, {}, receiver.messages[-1][1])
    leaving.post("/orders", {**ORDER, "user_id": user.user.pk}, x_request_id="of-lea")
    deliver()
    assert "of-lea" in str(WebhookDelivery.objects.get().attempts)
    assert admin.delete(f"/users/{leaving.user.pk}").status == 204
    erase()
    assert WebhookDelivery.objects.get().attempts == []


@pytest.mark.parametrize("path", ["webhook", "webhookdelivery"])
def test_admin_shows_rows_without_secrets_and_sends_again(chief, pages, receiver, path):
    secret = subscribe(with_key(chief), receiver).data["secret"]
    with_key(chief).post("/orders", ORDER)
    deliver()
    address = f"/admin/config/{path}/"
    row = WebhookDelivery.objects.get() if path == "webhookdelivery" else Webhook.objects.get()
    for each in (address, f"{address}{row.pk}/change/"):
        page = pages.get(each)
        assert (page.status_code, secret in page.content.decode()) == (200, False)
    if path == "webhookdelivery":
        pages.post(address, {"action": "retry", "_selected_action": [row.pk], "post": "yes"})
        deliver()
        assert len(receiver.messages) == 2
