"""A line in the log for each request that was answered.

It says who asked for what from where, by which kind of credential, and what it cost: the route and no path, the id of a
user and no credential. No secret can come into it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from config.http.client_address import format_client_address
from config.http.request_state import RequestState
from config.server.log_writer import log
from config.server.logs import render

NAME = "request"
# W3C Trace Context, section 3.2. Of a later version, what is known stands in front.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?=-|\Z)")


def log_answer(
    environ: Mapping[str, Any],
    state: RequestState,
    status: int,
    headers: Mapping[str, str],
    *,
    route: str,
    method: str,
    seconds: float,
    request: Any = None,
) -> None:
    """Writes the line of a request.

    Args:
        environ: its WSGI environment.
        state: its state.
        status: of the answer.
        headers: of the answer.
        route: the template of its address.
        method: of the request, if it is one that HTTP knows.
        seconds: that it took.
        request: Django's, where it was looked at.
    """
    user, kind = _find_principal(state, request)
    traceparent = environ.get("HTTP_TRACEPARENT")
    if traceparent is not None:
        known = _TRACEPARENT.match(traceparent)
        traceparent = known[0] if known else None
    line = {
        "time": datetime.now(UTC),
        "level": "INFO" if status < 500 else "ERROR",
        "logger": NAME,
        "request_id": headers.get("Request-Id"),
        "traceparent": traceparent,
        "method": method,
        "route": route,
        "status": status,
        "principal": user,
        "kind": kind,
        "version": headers.get("API-Version"),
        "bytes": int(headers.get("Content-Length") or 0),
        "duration_ms": int(1_000_000 * seconds) / 1000,
        "database_ms": int(1_000_000 * state.spent.seconds) / 1000,
        "statements": state.spent.statements,
        "replayed": "Idempotent-Replayed" in headers,
        "lane": state.lane,
    }
    if settings.LOG_CLIENT_ADDRESS:
        forwarded, remote = environ.get("HTTP_X_FORWARDED_FOR"), environ.get("REMOTE_ADDR", "")
        line["address"] = format_client_address(forwarded, remote, settings.TRUSTED_PROXIES)
    log.add(render(line))


def _find_principal(state: RequestState, request: Any) -> tuple[int | None, str | None]:
    """The id of the user who asks, and the kind of the credential."""
    if state.principal is not None:
        return state.principal.user.id, state.principal.kind
    # Of a page, where it was looked at (django.contrib.auth.middleware).
    user = getattr(request, "_cached_user", None)
    return (None, None) if user is None or user.pk is None else (user.pk, "session")
