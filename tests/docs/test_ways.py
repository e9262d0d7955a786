"""How many of the project's files run for a request, on the reference and on the fast path: what has to be read.

Of a warm process, in which what is made once has been made; with logging and metrics. The fast path is counted from the
ASGI entry on, the reference without config.fastpath, the server and the database backend: that of the accelerator stays
in place in a process where it is installed.
"""

import asyncio
import gc
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pytest
from django.conf import settings as configured

from accounts import logins
from config.api.handlers import Handler
from config.server.answers import answer
from config.server.application import Application
from tests.conftest import REFERENCE
from tests.server.environ import build_environ
from tests.server.received import Received
from tests.service import CHECKOUT

NOT_COUNTED = (".venv", "tests", "benchmarks")
BACKENDS = ("config/fastpath/", "config/postgresql/backend/")
REQUESTS = {"list": ("/users?page=2", None), "payment": ("/payments", {"amount": 12.5})}
RESOURCE_FILES = ("models.py", "serializers.py", "filters.py", "permissions.py", "views.py", "urls.py")

_keys = count()


class Trace:
    """The project's files of which code runs within it, in the order of their first calls."""

    def __init__(self, is_counted):
        self.is_counted = is_counted
        self.files = {}

    def __enter__(self):
        # Nothing of other tests is collected while it runs.
        gc.disable()
        sys.setprofile(self)

    def __exit__(self, *error):
        sys.setprofile(None)
        gc.enable()

    def __call__(self, frame, event, argument):
        if event == "call" and (name := self._get_name(frame)):
            self.files[name] = None

    def _get_name(self, frame):
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(CHECKOUT):
            return None
        name = path.relative_to(CHECKOUT).as_posix()
        return name if not name.startswith(NOT_COUNTED) and self.is_counted(name) else None


@pytest.fixture
def token(transactional_db, make_user, settings):
    settings.DEBUG = False
    for _ in range(30):
        caller = make_user("support")
    return str(logins.log_in(caller).access)


def get_least(traces):
    """The files of the way that has the fewest: now and then, what is written every some seconds is written."""
    return min((list(trace.files) for trace in traces), key=len)


@pytest.fixture
def trace_fast_path(token):
    if not configured.FAST_PATH:
        pytest.skip("The accelerator is not installed.")
    return lambda kind: asyncio.run(run_by_server(kind, token))


async def run_by_server(kind, token):
    # Without a Django, so that a request that does not take the fast path fails.
    application = Application(None)
    traces = [Trace(lambda name: True) for _ in range(3)]
    await application.start(asyncio.get_running_loop())
    try:
        for trace in [nullcontext()] * 5 + traces:
            path, body = REQUESTS[kind]
            headers = {"authorization": f"Bearer {token}", "idempotency_key": f"ways-{next(_keys)}"}
            received = Received(f"/api/v1{path}", body=body, **headers)
            with trace:
                await application(received.scope, received.receive, received.send)
            assert received.status == (201 if body else 200)
    finally:
        await application.stop()
    return get_least(traces)


@pytest.fixture
def trace_reference(token, settings):
    for name, value in REFERENCE.items():
        setattr(settings, name, value)
    return lambda kind: run_by_django(kind, token)


def run_by_django(kind, token):
    django = Handler()
    traces = [Trace(lambda name: not name.startswith(BACKENDS)) for _ in range(3)]
    for trace in [nullcontext()] * 5 + traces:
        path, body = REQUESTS[kind]
        environ = build_environ(path, token, body, f"ways-{next(_keys)}" if body else "")
        with trace:
            response = answer(django, environ)
        assert response.status == (201 if body else 200)
    return get_least(traces)


@pytest.mark.parametrize(("kind", "limit"), [("list", 34), ("payment", 36)])
def test_files_of_a_request_on_the_reference(trace_reference, kind, limit):
    files = trace_reference(kind)
    assert len(files) <= limit, " ".join(files)


@pytest.mark.parametrize(("kind", "limit"), [("list", 36), ("payment", 45)])
def test_files_of_a_request_on_the_fast_path(trace_fast_path, kind, limit):
    files = trace_fast_path(kind)
    assert {"config/server/application.py", "config/fastpath/postgresql/pipeline.py"} <= set(files)
    assert len(files) <= limit, " ".join(files)


@pytest.mark.parametrize("app", ["orders", "payments"])
def test_resource_is_under_100_lines(app):
    """The resources that only declare; what users and posts write beside that is rules of their own."""
    files = [path for name in RESOURCE_FILES if (path := CHECKOUT / app / name).exists()]
    assert sum(len(path.read_text().splitlines()) for path in files) < 100
