"""The WSGI application, and what Granian leaves to it: the bodies of requests."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

Environ = dict[str, Any]
StartResponse = Callable[..., Any]

# How much of a body that is refused for its size is still read. Many clients look for the answer only after they
# sent everything, and find a broken pipe when the server closes on them first.
DRAINED_BYTES = 64 * 1024 * 1024
PIECE = 256 * 1024

_django = get_wsgi_application()
# A request runs in this thread, whichever thread received it: one request at a time and one database connection in a
# process. The threads of Granian only wait for bodies, so that a slow client does not keep the others waiting.
_requests = ThreadPoolExecutor(max_workers=1, thread_name_prefix="requests")


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answers a request whose body, however it is sent, has been received and counted."""
    _receive_body(environ, settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)
    return _requests.submit(_respond, environ, start_response).result()


def _receive_body(environ: Environ, limit: int) -> None:
    """Puts the body, up to one byte over the limit, into memory.

    Django reads nothing where there is no Content-Length, as with `Transfer-Encoding: chunked`. Such a body gets its
    length here; one over the limit is seen to be, by that one byte.
    """
    declared = environ.get("CONTENT_LENGTH")
    if declared and int(declared) > limit and environ.get("HTTP_EXPECT"):
        # The client waits for `100 Continue` before it sends so much; it is refused first.
        return
    stream = environ["wsgi.input"]
    body = BytesIO()
    while body.tell() <= limit and (piece := stream.read(limit + 1 - body.tell())):
        body.write(piece)
    if body.tell() > limit:
        for _ in range(DRAINED_BYTES // PIECE):
            if not stream.read(PIECE):
                break
    if not declared and body.tell():
        environ["CONTENT_LENGTH"] = str(body.tell())
    body.seek(0)
    environ["wsgi.input"] = body


def _respond(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    response: Any = _django(environ, start_response)
    if response.streaming:
        return response
    # Closed in this thread: the signal that a request ended concerns the connections of the thread that sends it.
    response.close()
    return [response.content]
