"""Static files: in gzip where the client accepts it, and refused with the body of all other refusals."""

from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Headers, Response, StaticFile

from config.api.exceptions import plain_response
from config.http.compression import GZIP, compress_content, is_compressible, prefers_gzip
from config.http.errors import DomainError, ErrorCode
from config.http.headers import vary_on

METHODS = "GET, HEAD, OPTIONS"
# The consent page redirects here after a sign-in on the reference.
OAUTH_CALLBACK = "/oauth2-redirect.html"
# A process caches this many files in gzip, more than all pages together have.
_MAX_GZIPPED = 256


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> Any:
        """WhiteNoise's, which answers every method that is not GET or HEAD by an empty 405."""
        if request.method in {"GET", "HEAD"}:
            return _serve(static_file, request)
        if request.method == "OPTIONS":
            return HttpResponse(headers={"Allow": METHODS, "Content-Length": "0"})
        message = f'Method "{request.method}" not allowed.'
        return plain_response(
            DomainError(ErrorCode.METHOD_NOT_ALLOWED, message, headers={"Allow": METHODS}),
            request,
        )


def _serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
    headers = _get_headers(static_file)
    is_text = is_compressible(headers["Content-Type"] or "")
    # A range is one of the content as it is stored.
    if is_text and "HTTP_RANGE" not in request.META and prefers_gzip(request, int(headers["Content-Length"])):
        static_file = _compress(static_file)
    response: HttpResponse = WhiteNoiseMiddleware.serve(static_file, request)
    if is_text:
        vary_on(response, "Accept-Encoding")
    if request.path_info.endswith(OAUTH_CALLBACK):
        # It hands the code over to the page that opened it, from behind the consent page.
        response["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response


def _get_headers(static_file: StaticFile) -> Headers:
    ((_, _, headers),) = static_file.alternatives
    return Headers(list(headers))


class _GzippedFile(StaticFile):
    """A static file in gzip, in memory. WhiteNoise itself looks for one beside the file, in the package that has it."""

    def __init__(self, static_file: StaticFile) -> None:
        ((_, path, _),) = static_file.alternatives
        self._content = compress_content(Path(path).read_bytes())
        self.last_modified = static_file.last_modified
        # Strong tags of different bytes differ (RFC 9110, section 8.8.3.3).
        self.etag = f'{static_file.etag[:-1]}-{GZIP}"'
        headers = _get_headers(static_file)
        headers["ETag"] = self.etag
        headers["Content-Encoding"] = GZIP
        headers["Content-Length"] = str(len(self._content))
        self._headers = headers.items()
        self.not_modified_response = self.get_not_modified_response(headers)

    def get_response(self, method: str, request_headers: Any) -> Response:
        if self.is_not_modified(request_headers):
            return self.not_modified_response
        return Response(HTTPStatus.OK, self._headers, None if method == "HEAD" else BytesIO(self._content))


_compress = lru_cache(maxsize=_MAX_GZIPPED)(_GzippedFile)
