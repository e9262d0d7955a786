"""What holds for every answer, whichever view gives it."""

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

GetResponse = Callable[[HttpRequest], HttpResponse]

_SANE = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class RequestIdMiddleware:
    """Every answer carries a `Request-Id`: the client's own `X-Request-Id` when it is a sane one."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = given if _SANE.fullmatch(given) else str(uuid.uuid4())
        response = self.get_response(request)
        response["Request-Id"] = request_id
        return response
