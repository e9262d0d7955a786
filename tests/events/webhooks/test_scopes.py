"""What a credential may do to a webhook that was made with more scopes than its own: nothing that has events sent."""

from __future__ import annotations

import pytest

from config.models import Webhook, WebhookDelivery
from tests.conftest import with_key
from tests.events.webhooks.rows import make_pair, make_webhook

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = {
    "write": {"webhooks:write"},
    "events": {"webhooks:write", "events:read"},
    "payments": {"webhooks:write", "payments:read"},
    "both": {"webhooks:write", "events:read", "payments:read"},
    "orders, too": {"webhooks:write", "events:read", "payments:read", "orders:read"},
}
URL = "https://example.com/other"
# Of a webhook with payment.created alone; the statuses are those of KEYS, in order.
MATRIX = [
    ("PATCH /webhooks/{0}", {"url": URL}, [403, 403, 403, 200, 200]),
    ("PATCH /webhooks/{0}", {"types": ["payment.created", "order.created"]}, [403, 403, 403, 403, 200]),
    ("PATCH /webhooks/{0}", {"types": ["order.created"]}, [403, 403, 403, 403, 200]),
    ("PATCH /webhooks/{0}", {"status": "active"}, [403, 403, 403, 200, 200]),
    ("PATCH /webhooks/{0}", {"status": "disabled", "url": URL}, [403, 403, 403, 200, 200]),
    ("POST /webhooks/{0}/rotations", {}, [403, 403, 403, 201, 201]),
    ("POST /webhooks/{0}/pings", {}, [403, 403, 403, 202, 202]),
    ("POST /webhooks/{0}/replays", {"cursor": ""}, [403, 403, 403, 202, 202]),
    ("POST /webhooks/{0}/deliveries/{0}/retries", {}, [403, 403, 403, 202, 202]),
    ("PATCH /webhooks/{0}", {"description": "New"}, [200] * 5),
    ("PATCH /webhooks/{0}", {"status": "disabled"}, [200] * 5),
    ("PATCH /webhooks/{0}", {"url": "https://example.com/hook", "types": ["payment.created"]}, [200] * 5),
    ("DELETE /webhooks/{0}", None, [204] * 5),
]


def read_rows() -> list[object]:
    return [*Webhook.objects.values(), *WebhookDelivery.objects.values()]


@pytest.mark.parametrize(("line", "body", "statuses"), MATRIX)
def test_credential_has_nothing_sent_that_it_may_not_read(make_user, line, body, statuses):
    user, answers = make_user(), []
    for scopes in KEYS.values():
        pk = make_pair(user)
        Webhook.objects.update(
            types=["payment.created"], status="disabled" if body == {"status": "active"} else "active"
        )
        WebhookDelivery.objects.update(type="payment.created")
        before = read_rows()
        answer = with_key(user, scopes)(*line.format(pk).split(), body)
        answers.append(answer.status)
        if answer.status == 403:
            assert (answer.code, read_rows()) == ("INSUFFICIENT_SCOPE", before)
        Webhook.objects.all().delete()
    assert answers == statuses


def test_what_waits_of_earlier_types_is_not_redirected_either(make_user):
    user = make_user()
    pk = make_pair(user)
    WebhookDelivery.objects.update(type="payment.created")
    caller = with_key(user, {"webhooks:write", "events:read", "orders:read"})
    path = f"/webhooks/{pk}"
    for answer in (caller.patch(path, {"url": URL}), caller.post(f"{path}/deliveries/{pk}/retries", {})):
        assert (answer.status, answer.code) == (403, "INSUFFICIENT_SCOPE")
        assert 'scope="payments:read"' in answer.headers["WWW-Authenticate"]
    assert caller.post(f"{path}/pings", {}).status == 202
    WebhookDelivery.objects.update(status="delivered")
    assert caller.patch(path, {"url": URL}).status == 200


@pytest.mark.parametrize(("of_others", "status"), [(["posts:read"], 403), ([], 202)])
def test_removals_of_others_need_the_scope_by_which_the_webhook_sees_them(make_user, of_others, status):
    user = make_user()
    webhook = make_webhook(user, types=["user.removed"], scopes=["events:read", "users:read", *of_others])
    caller = with_key(user, {"webhooks:write", "events:read", "users:read"})
    assert caller.post(f"/webhooks/{webhook.pk}/pings", {}).status == status


def test_link_to_a_retry_is_shown_to_those_who_may_send_it_and_changes_the_tag(make_user):
    user = make_user()
    pk = make_pair(user)
    caller = with_key(user, {"webhooks:read", "webhooks:write", "events:read", "orders:read"})
    path = f"/webhooks/{pk}/deliveries/{pk}"
    shown = caller.get(path)
    Webhook.objects.update(types=["order.created", "payment.created"])
    hidden = caller.get(path, If_None_Match=shown.headers["ETag"])
    assert (hidden.status, ["retry" in answer.data["_links"] for answer in (shown, hidden)]) == (200, [True, False])
