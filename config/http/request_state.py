"""The service's own state of a request, in one place.

The server makes it before it runs a request, and reads it afterwards for its log and metrics. Middlewares and
views reach it by the request, what has no request at hand (the database layer, the log) by `present_state`.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.http import HttpRequest

STATE = "config.request_state"
_LOCK_NOT_AVAILABLE = "55P03"


class Spent:
    """The database statements of a request so far.

    Attributes:
        statements: how many it has sent.
        seconds: that it has waited for them. Those of several requests that are sent together are waited for together.
        lock_timeouts: how many of them were ended because they waited for a lock.
    """

    __slots__ = ("lock_timeouts", "seconds", "statements")

    def __init__(self) -> None:
        self.statements = self.lock_timeouts = 0
        self.seconds = 0.0

    def add(self, sql: object, seconds: float, error: BaseException | None = None) -> None:
        """Counts a statement.

        Args:
            sql: of it.
            seconds: that it was waited for.
            error: psycopg's, or whatever else ended it.
        """
        self.statements += 1
        self.seconds += seconds
        self.lock_timeouts += getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE


@dataclass(slots=True)
class RequestState:
    """The state of one request. What is shown to nobody but its log and metrics is the server's.

    Attributes:
        lane: in which the server runs it.
        spent: what it has asked of the database.
        refused: what kept it from Django: a DomainError, or a bug.
        sent_content_type: the Content-Type as the client sent it, of which Django sees a part.
        secret_parameters: the API keys of its query, from which they were taken out.
        request_id: see RequestMiddleware.
        request: Django's, while it is answered.
        logs_events: whether its audit events are logged and counted.
        version: the config.api.versions.table.Version that it asks for.
        principal: the config.api.principal.Principal of its credential.
        user_id: of the user whose good credential it carries.
        quota_fields: the fields of its response that tell its quota; None until it is counted.
        counted: under which key the look-up of its credential has counted it, and the usage.
        answer_wanted: the values that select the stored answer to be read with its credential.
        answer_read: whose stored answer was read, and the answer.
        replica: the alias of the database that its reads come from; None for the primary.
        stand_in: the replica that its credential was read from while there was no primary: nothing is written for it.
        replica_before: from which replica its user has read before.
        has_waited: whether it has waited for that replica to catch up.
        position_read: the read position of its user, empty where there is none; None until it is read.
        send_at: when its response may be sent by `time.monotonic()`: at first, when the request came. None under a
            server that cannot wait for that.
    """

    lane: str | None = None
    spent: Spent = field(default_factory=Spent)
    refused: Exception | None = None
    sent_content_type: str | None = None
    secret_parameters: Sequence[str] = ()
    request_id: str | None = None
    request: HttpRequest | None = None
    logs_events: bool = True
    version: Any = None
    principal: Any = None
    user_id: int | None = None
    quota_fields: Mapping[str, str] | None = None
    counted: tuple[str, Any] | None = None
    answer_wanted: Mapping[str, str] | None = None
    answer_read: tuple[int, Any] | None = None
    replica: str | None = None
    stand_in: str | None = None
    replica_before: str | None = None
    has_waited: bool = False
    position_read: Sequence[str] | None = None
    send_at: float | None = None


# The state of the current request; None outside of requests.
present_state: ContextVar[RequestState | None] = ContextVar("present_state", default=None)


def get_state(environ: MutableMapping[str, Any]) -> RequestState:
    """The state of a request, by its WSGI environment (`request.META`)."""
    try:
        state: RequestState = environ[STATE]
    except KeyError:
        state = environ[STATE] = RequestState()
    return state


def get_actor(state: RequestState) -> tuple[Any, str]:
    """The actor, and the kind of credential: one of the API's, `session`, `none`, or `command` for an operator."""
    if state.request is None:
        return None, "command"
    if state.principal is not None:
        return state.principal.user, state.principal.kind
    # The user of the admin, whose pages have no principal.
    user = getattr(state.request, "user", None)
    return (user, "session") if getattr(user, "is_authenticated", False) else (None, "none")


def get_spent() -> Spent:
    """The database statements of the current request; outside of requests, an instance that nobody reads."""
    state = present_state.get()
    return Spent() if state is None else state.spent
