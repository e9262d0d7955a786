"""The audit trail of credentials: one structured line in the log and one row for the administrators."""

import json
import logging
from typing import Any

from config.api.addresses import client_address
from config.models import AuditEvent

logger = logging.getLogger("audit")


def record(event: str, request: Any = None, *, user: Any = None, **facts: Any) -> None:
    """Notes an event, `login.failed` for one.

    Args:
        event: what happened, as `thing.happening`.
        request: during which, if any: its address and Request-Id are noted.
        user: whom it concerns, if that is known.
        facts: what else is worth knowing. Never a secret, nor a part of one.
    """
    address = str(client_address(request)) if request is not None else None
    request_id = getattr(getattr(request, "_request", request), "request_id", "") if request is not None else ""
    AuditEvent.objects.create(event=event, user=user, address=address, request_id=request_id, facts=facts)
    line = {"event": event, "user": getattr(user, "pk", None), "address": address, "request_id": request_id, **facts}
    logger.info(json.dumps(line, ensure_ascii=False, default=str))
