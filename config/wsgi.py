"""The WSGI application, for any server that speaks WSGI. `manage.py serve` uses config.server.rsgi, without a proxy."""

import os
from collections.abc import Callable, Iterable
from http.client import responses
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
_django: Any = get_wsgi_application()

from config.api.versions.usage import uses  # noqa: E402 - it needs the apps
from config.http.errors import DomainError  # noqa: E402
from config.http.request_limits import screen  # noqa: E402
from config.server.answers import Environ, answer, refuse  # noqa: E402


def application(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers a request. It is the server's task, or that of a proxy in front, to bring the body in time and whole."""
    try:
        screen(environ)
        _receive_body(environ, settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)
    except DomainError as problem:
        refuse(environ, problem)
    status, headers, body = answer(_django, environ)
    uses.write_when_due()
    start_response(f"{status} {responses.get(status, '')}", headers)
    return [body]


def _receive_body(environ: Environ, limit: int) -> None:
    """Puts a chunked body, up to one byte over the limit, into memory: Django reads none without Content-Length."""
    if not environ.get("CONTENT_LENGTH") and environ.get("HTTP_TRANSFER_ENCODING"):
        body = environ["wsgi.input"].read(limit + 1)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = BytesIO(body)
