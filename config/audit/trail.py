"""The audit trail of users, credentials, and exported rows: a line in the log, a row for the administrators."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from prometheus_client import Counter

from config.http.client_address import client_address
from config.http.request_state import RequestState, get_actor, present_state
from config.models import AuditEvent

logger = logging.getLogger("audit")
# Every event there is, in the order in which the admin offers them.
EVENTS = (
    "user.created",
    "user.changed",
    "user.removed",
    "login",
    "login.failed",
    "login.refused",
    "logout",
    "session.ended",
    "token.refreshed",
    "token.reused",
    "password.changed",
    "password.rehashed",
    "credentials.ended",
    "password_reset.requested",
    "password_reset.used",
    "email_verification.requested",
    "email_verification.used",
    "invitation.requested",
    "invitation.used",
    "api_key.created",
    "api_key.rotated",
    "api_key.revoked",
    "api_key.refused",
    "oauth_application.created",
    "oauth_application.changed",
    "oauth_application.secret_rotated",
    "oauth_application.removed",
    "oauth_code.issued",
    "oauth_code.reused",
    "oauth_token.issued",
    "oauth_token.refreshed",
    "oauth_token.revoked",
    "oauth_refresh_token.reused",
    "oauth_grant.ended",
    "webhook.created",
    "webhook.changed",
    "webhook.secret_rotated",
    "webhook.disabled",
    "webhook.removed",
    "archive.exported",
    "rows.exported",
)
COUNTED = Counter("audit_events", "Events of the audit trail; log-ins by their outcome among them.", ["event"])


@contextmanager
def rows_alone() -> Iterator[None]:
    """Leaves log and metrics out: a command prints what it made and nothing else."""
    token = present_state.set(RequestState(logs_events=False))
    try:
        yield
    finally:
        present_state.reset(token)


def record(event: str, *, user: Any = None, by: Any = None, **facts: object) -> None:
    """Notes an event, `login.failed` for one, with the address and Request-Id of the present request, if there is one.

    The line is written, and the event counted, when the row is committed: what is rolled back did not happen, and may
    be run again.

    Args:
        event: what happened, as `thing.happening`.
        user: whom it concerns, if that is known.
        by: the user who did it, which becomes a fact where that is another one.
        facts: what else is worth knowing. Never a secret, nor a part of one, nor a name of the user.
    """
    if by is not None and by != user:
        facts["by"] = by.pk
    _add_event(event, user, facts)


def record_write(event: str, *, user: Any = None, **facts: object) -> None:
    """Records what somebody did to a user, with the kind of credential and, if it has one, its user as `by`.

    Args:
        event: as of `record`.
        user: whom it was done to; None for several, and for one who is removed, with whom the event would go.
        facts: as of `record`.
    """
    state = present_state.get() or RequestState()
    by, credential = get_actor(state)
    if by is not None:
        facts["by"] = by.pk
    _add_event(event, user, {"credential": credential, **facts})


def _add_event(event: str, user: Any, facts: dict[str, object]) -> None:
    state = present_state.get() or RequestState()
    request, request_id = state.request, state.request_id or ""
    address = str(client_address(request)) if request else None
    AuditEvent.objects.create(event=event, user=user, address=address, request_id=request_id, facts=facts)
    told = {"address": address} if settings.LOG_CLIENT_ADDRESS else {}
    line = {"request": request, "facts": {"user": getattr(user, "pk", None), **told, **facts}}
    if state.logs_events:
        transaction.on_commit(partial(logger.info, event, extra=line))
        transaction.on_commit(COUNTED.labels(event).inc)
