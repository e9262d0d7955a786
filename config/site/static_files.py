"""Static files, whose refusals have the body of all others."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

from config.api.exceptions import plain_response
from config.http.errors import DomainError, ErrorCode

METHODS = "GET, HEAD, OPTIONS"


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> Any:
        """WhiteNoise's, which answers every method that is not GET or HEAD by an empty 405."""
        if request.method in {"GET", "HEAD"}:
            return WhiteNoiseMiddleware.serve(static_file, request)
        if request.method == "OPTIONS":
            return HttpResponse(headers={"Allow": METHODS, "Content-Length": "0"})
        message = f'Method "{request.method}" not allowed.'
        return plain_response(
            DomainError(ErrorCode.METHOD_NOT_ALLOWED, message, headers={"Allow": METHODS}),
            request,
        )
