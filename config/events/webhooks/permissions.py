from __future__ import annotations

from collections.abc import Collection

from config.api.permissions import ResourcePermission, require_scope
from config.api.principal import Principal
from config.models import Webhook, WebhookDelivery
from config.models.events import PUBLIC, PUBLIC_SCOPE, SCOPES
from config.models.webhooks import PING


class WebhookPermission(ResourcePermission):
    """A user's own, and all for administrators."""

    @staticmethod
    def may_change(principal: Principal, row: Webhook) -> bool:
        return bool(principal.user.is_administrator or principal.user.pk == row.user_id)

    @staticmethod
    def may_retry(principal: Principal, row: WebhookDelivery) -> bool:
        webhook = row.webhook
        return principal.scopes.issuperset(get_sending_scopes(webhook.scopes, {*webhook.types, row.type}))


def get_sending_scopes(scopes: Collection[str], types: Collection[str]) -> list[str]:
    """The scopes that read what a webhook sends, in the order in which a refusal names the first missing one.

    Args:
        scopes: of the webhook.
        types: of the events, or of pings.
    """
    needed = {SCOPES[name] for name in types if name != PING}
    if PUBLIC_SCOPE in scopes and not PUBLIC.isdisjoint(types):
        needed.add(PUBLIC_SCOPE)
    return ["events:read", *sorted(needed)]


def require_sending_scopes(principal: Principal, scopes: Collection[str], types: Collection[str]) -> None:
    """Requires the caller to be allowed to read what a webhook sends. The webhook may have more scopes than the caller.

    Raises:
        DomainError: INSUFFICIENT_SCOPE.
    """
    for scope in get_sending_scopes(scopes, types):
        require_scope(principal, scope)
