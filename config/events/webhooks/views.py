from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import django_filters
from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from config import audit
from config.api.listing.filters import StrictFilterSet
from config.api.principal import SCOPES, lock_credentials
from config.api.representation.envelope import Link, build_address
from config.api.views import View
from config.api.viewsets import ResourceViewSet, parse_id
from config.api.writing.idempotency import KeyPolicy
from config.events.feed import Question, read_page
from config.events.representation import open_place
from config.events.webhooks import queue
from config.events.webhooks.permissions import WebhookPermission, require_sending_scopes
from config.events.webhooks.serializers import (
    QueuedDeliverySerializer,
    ReplaySerializer,
    WebhookDeliverySerializer,
    WebhookRotationSerializer,
    WebhookSerializer,
)
from config.events.webhooks.signatures import build_secret, format_secret, seal_secret
from config.http.errors import DomainError, ErrorCode, forbidden, not_found
from config.models import DeliveryStatus, Webhook, WebhookDelivery, WebhookStatus
from config.models.webhooks import PING
from config.postgresql.transactions import advisory_lock, get_lock_number, run_in_transaction

# Each event of a type is sent to all of them.
MAX_WEBHOOKS = 20
TAG = "webhooks"
_NEEDS_ACTIVE = "Returns 409 if the webhook is disabled. "
_SENDING_SCOPES = "Also requires the scope `events:read` and the read scope of each type of the webhook."


class WebhookViewSet(ResourceViewSet):
    """Your webhooks; for administrators everybody's."""

    texts = {
        "create": "Creates a new webhook.\n\n"
        "The service sends to `url` each new event of these `types` that you are allowed to read, signed as in "
        "Standard Webhooks. Only this response contains the `secret` with which you verify the signatures: store it "
        "now. The `secret` of a dry run does not work. The webhook keeps the API version of this request and the "
        "scopes of its credential, even after the credential expires or is revoked. "
        f"Returns 409 if you have {MAX_WEBHOOKS} webhooks. "
        "Also requires the scope `events:read` and the read scope of each type in `types`.",
        "partial_update": "Updates the fields that you send.\n\n"
        "The body is a merge patch (RFC 7396). To enable a disabled webhook, set `status` to `active`. Enabling a "
        "webhook and changing its `url` or `types` require the same scopes as creating it.",
        "destroy": "Deletes the webhook.\n\nNo more events are sent to its `url`. Repeating the request returns 404.",
    }
    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer
    permission_classes = [WebhookPermission]
    scope = "webhooks"
    # An answer with a secret is stored nowhere.
    idempotency = KeyPolicy.REFUSED
    cache_control = "no-store"
    may_read_replica = False
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    own_errors = {"POST": (ErrorCode.CONFLICT,)}
    links = (
        Link("self", "/webhooks/{0.id}", "webhooks:read"),
        Link("deliveries", "/webhooks/{0.id}/deliveries", "webhooks:read"),
        Link("update", "/webhooks/{0.id}", "webhooks:write", "PATCH", WebhookPermission.may_change),
        Link("delete", "/webhooks/{0.id}", "webhooks:write", "DELETE", WebhookPermission.may_change),
    )

    def lock_related(self) -> None:
        # As whoever ends the owner's credentials locks: the audit event locks the owner in the end.
        owners = self.get_queryset().filter(pk=parse_id(self.kwargs["id"])).values_list("user_id", flat=True)
        get_user_model()._default_manager.lock_all_key_share({*owners, self.principal.user.pk})
        lock_credentials(self.principal.user)

    def perform_create(self, serializer: Any) -> None:
        require_sending_scopes(self.principal, self.principal.scopes, serializer.validated_data["types"])
        user = self.principal.user
        lock_credentials(user)
        # Of simultaneous requests each counts those that were made before.
        advisory_lock(get_lock_number(f"webhooks of user {user.pk}"))
        if Webhook.objects.filter(user=user)[MAX_WEBHOOKS - 1 :].exists():
            raise DomainError(ErrorCode.CONFLICT, f"You have {MAX_WEBHOOKS} webhooks. Delete one first.")
        secret = build_secret()
        scopes = [scope for scope in SCOPES if scope in self.principal.scopes]
        version = self.request.version.number
        webhook = serializer.save(user=user, secret=seal_secret(secret), scopes=scopes, version=version)
        webhook.refresh_from_db()
        webhook.new_secret = format_secret(secret)
        queue.begin()
        audit.record("webhook.created", user=user, webhook=webhook.pk)

    def perform_update(self, serializer: Any) -> None:
        webhook, changes = serializer.instance, serializer.validated_data
        changed = [name for name, value in changes.items() if getattr(webhook, name) != value]
        sending = {"url", "types", *(["status"] if changes.get("status") == WebhookStatus.ACTIVE else [])}
        if not sending.isdisjoint(changed):
            # Deliveries of earlier types may still be waiting.
            waiting = webhook.deliveries.filter(status=DeliveryStatus.PENDING).order_by().values_list("type").distinct()
            types = {*webhook.types, *changes.get("types", ()), *(name for (name,) in waiting)}
            require_sending_scopes(self.principal, webhook.scopes, types)
        if "status" in changed:
            changes["disabled_reason"] = ""
            # As if it had never failed.
            Webhook.objects.filter(pk=webhook.pk).update(failing_since=None, paused_until=None)
        serializer.save()
        if changed:
            audit.record("webhook.changed", user=webhook.user, by=self.principal.user, webhook=webhook.pk)

    def perform_destroy(self, instance: Webhook) -> None:
        audit.record("webhook.removed", user=instance.user, by=self.principal.user, webhook=instance.pk)
        instance.delete()


@extend_schema_view(create=extend_schema(summary="Rotate webhook secret"))
class RotationViewSet(WebhookViewSet):
    """New secrets of a webhook."""

    texts = {
        "create": "Rotates the secret of the webhook.\n\n"
        "Only this response contains the new `secret`: store it now. The `secret` of a dry run does not work. During "
        "`overlap_seconds`, deliveries are signed with the old and the new secret: update your server in that time. If "
        "you rotate again within that time, the oldest of the three secrets is no longer used. Only the owner of the "
        "webhook can rotate its secret. " + _SENDING_SCOPES,
        "created": "The secret was rotated.",
    }
    serializer_class = WebhookRotationSerializer
    http_method_names = ["post", "options"]
    own_errors = {"POST": (ErrorCode.FORBIDDEN,)}

    def perform_create(self, serializer: Any) -> None:
        webhook = lock_webhook(self.principal, self.kwargs["webhook_id"])
        if webhook.user_id != self.principal.user.pk:
            raise forbidden("Only its owner can rotate a secret.")
        secret = build_secret()
        webhook.previous_secret, webhook.secret = webhook.secret, seal_secret(secret)
        webhook.previous_until = timezone.now() + timedelta(seconds=serializer.validated_data["overlap_seconds"])
        webhook.save(update_fields=["previous_secret", "secret", "previous_until"])
        webhook.refresh_from_db()
        webhook.new_secret = format_secret(secret)
        serializer.instance = webhook
        audit.record("webhook.secret_rotated", user=webhook.user, webhook=webhook.pk)


def lock_webhook(principal: Any, webhook_id: str) -> Webhook:
    """A webhook that the caller sees, and whose events it may read, locked.

    Raises:
        DomainError: NOT_FOUND when there is none; INSUFFICIENT_SCOPE.
    """
    rows = Webhook.objects.visible_to(principal).select_related("user").filter(pk=parse_id(webhook_id))
    webhook: Webhook | None = rows.select_for_update(of=("self",), no_key=True).first()
    if webhook is None:
        raise not_found()
    require_sending_scopes(principal, webhook.scopes, webhook.types)
    return webhook


class DeliveryFilterSet(StrictFilterSet):
    status = django_filters.ChoiceFilter(
        choices=DeliveryStatus.choices,
        error_messages={"invalid_choice": f"Must be one of: {', '.join(DeliveryStatus.values)}."},
    )


@extend_schema_view(list=extend_schema(summary="List deliveries"), retrieve=extend_schema(summary="Read delivery"))
class DeliveryViewSet(ResourceViewSet):
    """What was, or will be, sent to a webhook."""

    texts = {
        "list": "Returns a page of the deliveries of the webhook.\n\n"
        "`attempts` contains the responses of your server. Deliveries are deleted after 30 days.",
    }
    queryset = WebhookDelivery.objects.all()
    serializer_class = WebhookDeliverySerializer
    permission_classes = [WebhookPermission]
    scope = "webhooks"
    parent_field = "webhook_id"
    filterset_class = DeliveryFilterSet
    staff_filters = ()
    may_read_replica = False
    version_columns = ("status", "due_at", "attempts")
    http_method_names = ["get", "head", "options"]
    links = (
        Link("self", "/webhooks/{0.webhook_id}/deliveries/{0.id}", "webhooks:read"),
        Link("webhook", "/webhooks/{0.webhook_id}", "webhooks:read"),
        Link(
            "retry",
            "/webhooks/{0.webhook_id}/deliveries/{0.id}/retries",
            "webhooks:write",
            "POST",
            WebhookPermission.may_retry,
            select_related="webhook",
        ),
    )

    def get_parents(self) -> QuerySet[Model]:
        return Webhook.objects.visible_to(self.principal)


class DeliveringView(View):
    """Queues something for a webhook."""

    permission_classes = [WebhookPermission]
    own_errors: ClassVar[Any] = {"POST": (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT)}

    def required_scope(self, method: str) -> str:
        return "webhooks:write"

    def lock_active(self, webhook_id: str) -> Webhook:
        webhook = lock_webhook(self.principal, webhook_id)
        if webhook.status != WebhookStatus.ACTIVE:
            raise DomainError(ErrorCode.CONFLICT, "The webhook is disabled. Set its status to active first.")
        return webhook

    def respond(self, delivery: WebhookDelivery) -> Response:
        context = {"principal": self.principal, "version": self.request.version}
        response = self.success(QueuedDeliverySerializer(delivery, context=context).data, 202)
        response["Location"] = build_address(self.request, DeliveryViewSet.links[0].path.format(delivery))
        return response


class PingView(DeliveringView):
    texts = {
        "post": f"Ping webhook.\n\nSends an event of type `{PING}`. `Location` is the URL of its delivery. "
        + _NEEDS_ACTIVE
        + _SENDING_SCOPES
    }

    @extend_schema(request=None, responses={202: QueuedDeliverySerializer}, tags=[TAG])
    def post(self, request: Request, webhook_id: str, **kwargs: str) -> Response:
        self.read(request)

        def ping() -> WebhookDelivery:
            delivery = WebhookDelivery.objects.create(webhook=self.lock_active(webhook_id), type=PING)
            delivery.refresh_from_db()
            return delivery

        return self.respond(run_in_transaction(ping))


class RetryView(DeliveringView):
    texts = {
        "post": "Retry delivery.\n\nSends the delivery again immediately, whatever its status. If this attempt fails, "
        "more follow until three days after the delivery was created. A delivery that is older than three days gets "
        "only this attempt. " + _NEEDS_ACTIVE + _SENDING_SCOPES
    }

    @extend_schema(request=None, responses={202: QueuedDeliverySerializer}, tags=[TAG])
    def post(self, request: Request, webhook_id: str, delivery_id: str, **kwargs: str) -> Response:
        self.read(request)
        return self.respond(run_in_transaction(lambda: self._retry(self.lock_active(webhook_id), delivery_id)))

    def _retry(self, webhook: Webhook, delivery_id: str) -> WebhookDelivery:
        rows = webhook.deliveries.select_for_update(no_key=True, of=("self",))
        delivery: WebhookDelivery | None = rows.filter(pk=parse_id(delivery_id)).first()
        if delivery is None:
            raise not_found()
        require_sending_scopes(self.principal, webhook.scopes, [delivery.type])
        delivery.retry()
        return delivery


class ReplayView(DeliveringView):
    serializer_class = ReplaySerializer
    own_errors = {"POST": (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.INVALID_CURSOR, ErrorCode.CURSOR_EXPIRED)}
    texts = {
        "post": "Replay events.\n\n"
        "Resends all stored events of the webhook's types that follow the event with this `cursor`. A resent event has "
        "the same `webhook-id` header as before, so that your server can ignore duplicates. "
        + _NEEDS_ACTIVE
        + _SENDING_SCOPES
    }

    @extend_schema(request=ReplaySerializer, responses={202: ReplaySerializer}, tags=[TAG])
    def post(self, request: Request, webhook_id: str, **kwargs: str) -> Response:
        cursor = self.read(request)["cursor"]
        place = open_place(cursor) if cursor else None
        # An expired cursor leads nowhere.
        read_page(self.principal, Question(place, is_end=True))

        def replay() -> None:
            webhook = self.lock_active(webhook_id)
            webhook.replay_position, webhook.replay_id = (place.position, place.id) if place else (0, 0)
            webhook.save(update_fields=["replay_position", "replay_id"])

        run_in_transaction(replay)
        return self.success({"cursor": cursor}, 202)
