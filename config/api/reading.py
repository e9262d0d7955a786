"""What views and middlewares do for reads on replicas (config.postgresql.replicas)."""

from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import Error
from django.http import HttpRequest, HttpResponse
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.views import ConventionsMixin
from config.http.middleware import GetResponse
from config.http.request_state import get_state
from config.postgresql.replicas.reads import begin_read, fall_back, note_position

# These refuse a request before any row is read; for a read, 400 does, too. But 403 reveals that the row of the address
# exists, and so does the 400 of a write.
_UNSEEN = frozenset({401, 413, 415, 429})


class ReplicaMixin(ConventionsMixin):
    """What a viewset does to read from replicas.

    Attributes:
        may_read_replica: whether it does so at all.
    """

    may_read_replica = True

    def begin_reading(self, request: Request) -> None:
        """Is called when the request is known to be good, before its action reads anything."""
        state = get_state(request.META)
        begin_read(state, self.principal.user.pk, may_read_replica=self.may_read_replica)

    def handle_exception(self: Any, exc: Exception) -> Response:
        """DRF's hook; what a replica has failed to give is read on the primary."""
        if fall_back(exc):
            self.parameters = self.build_parameters(self.request)
            try:
                self.enveloped = self.parameters.flag("envelope", default=True)
                self.parse_query(self.request)
                return getattr(self, self.action)(self.request, *self.args, **self.kwargs)
            except Exception as problem:  # noqa: BLE001 - as in DRF's dispatch
                exc = problem
        return super().handle_exception(exc)


class ReadPositionMiddleware:
    """Notes behind each request what its user has seen on the primary: what it has written, or was shown from there."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.REPLICAS:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        state = get_state(request.META)
        try:
            response = self.get_response(request)
            is_of_primary = state.replica is None and state.stand_in is None
        finally:
            state.replica = None
        is_read, status = request.method in SAFE_METHODS, response.status_code
        # A failed response shows nothing. But a write that failed may have taken effect.
        is_shown = status not in _UNSEEN and not (is_read and (status == 400 or status >= 500))
        is_seen = is_of_primary and is_shown and request.method != "OPTIONS"
        if (is_seen or state.has_waited) and (user_id := _get_user_id(request)):
            try:
                note_position(state, user_id, is_read=is_read, has_failed=status >= 500)
            except Error:
                if is_seen:
                    response.close()
                    raise
        return response


def _get_user_id(request: Any) -> int | None:
    user_id = get_state(request.META).user_id
    # For a page, which no quota counts, and for which Django has looked up the user of its session.
    if user_id is None and (user := getattr(request, "_cached_user", None)):
        user_id = user.pk
    return user_id
