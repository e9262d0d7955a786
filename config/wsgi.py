"""The WSGI application, for any server that speaks WSGI. `manage.py serve` runs config.asgi, without a proxy.

The server, or a proxy in front of it, must deliver a body in time, whole, and with its length.
"""

import os
from collections.abc import Callable
from typing import Any

from django import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
setup(set_prefix=False)

from config.api.handlers import Handler  # noqa: E402 - they need the apps
from config.api.versions.usage import uses  # noqa: E402
from config.http.errors import DomainError  # noqa: E402
from config.http.request_limits import screen  # noqa: E402
from config.server.answers import refuse  # noqa: E402

_django: Any = Handler()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    try:
        screen(environ)
    except DomainError as problem:
        refuse(environ, problem)
    response = _django(environ, start_response)
    if not response.streaming:
        # Not in the middle of a stream, which holds a transaction of this thread.
        uses.write_when_due()
    return response
