from config.api.permissions import ResourcePermission
from config.api.principal import Principal
from config.models import Webhook


class WebhookPermission(ResourcePermission):
    """A user's own, and all for administrators."""

    @staticmethod
    def may_change(principal: Principal, row: Webhook) -> bool:
        return bool(principal.user.is_administrator or principal.user.pk == row.user_id)
