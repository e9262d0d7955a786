"""How many of the project's files run for a request, on the reference and on the fast path: what has to be read.

Of a warm process, in which what is made once has been made. The reference is counted without config.fastpath: its
database backend stays in place in a process where the accelerator is installed.
"""

import gc
import sys
from itertools import count
from pathlib import Path

import pytest
from django.conf import settings as configured

from accounts import logins
from config.api.handlers import Handler
from config.server.answers import answer
from tests.conftest import REFERENCE
from tests.server.environ import build_environ
from tests.service import CHECKOUT

# The line of a request in the log tells of its way, and is no part of it.
LOG = (
    "config/server/log_writer.py",
    "config/server/request_log.py",
    "config/server/logs.py",
    "config/postgresql/statements.py",
)
NOT_COUNTED = (".venv", "tests", "benchmarks", *LOG)
REQUESTS = {"list": ("/users?page=2", None), "payment": ("/payments", {"amount": 12.5})}
RESOURCE_FILES = ("models.py", "serializers.py", "filters.py", "permissions.py", "views.py", "urls.py")

_keys = count()


class Trace:
    """The project's files of which code runs, in the order of their first calls."""

    def __init__(self, counted):
        self.counted = counted
        self.files = {}

    def __call__(self, frame, event, argument):
        if event == "call" and (name := self._get_name(frame)):
            self.files[name] = None

    def _get_name(self, frame):
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(CHECKOUT):
            return None
        name = path.relative_to(CHECKOUT).as_posix()
        return name if not name.startswith(NOT_COUNTED) and self.counted(name) else None


@pytest.fixture
def token(transactional_db, make_user, settings):
    settings.DEBUG = False
    for _ in range(30):
        caller = make_user("support")
    return str(logins.log_in(caller).access)


def run_traced(django, kind, token, counted):
    path, body = REQUESTS[kind]

    def build():
        return build_environ(path, token, body, f"ways-{next(_keys)}" if body else "")

    for _ in range(5):
        assert answer(django, build()).status == (201 if body else 200)
    # The fewest of three: after one of them, what is written every some seconds may be written.
    return min((_trace(django, build(), counted) for _ in range(3)), key=len)


def _trace(django, environ, counted):
    trace = Trace(counted)
    # What is collected while it runs is of other tests.
    gc.collect()
    gc.disable()
    sys.setprofile(trace)
    try:
        answer(django, environ)
    finally:
        sys.setprofile(None)
        gc.enable()
    return list(trace.files)


@pytest.fixture
def trace_fast_path(token):
    if not configured.FAST_PATH:
        pytest.skip("The accelerator is not installed.")
    # Without a Django, so that a request that does not take the fast path fails.
    return lambda kind: run_traced(None, kind, token, lambda name: True)


@pytest.fixture
def trace_reference(token, settings):
    for name, value in REFERENCE.items():
        setattr(settings, name, value)
    return lambda kind: run_traced(Handler(), kind, token, lambda name: not name.startswith("config/fastpath/"))


@pytest.mark.parametrize(("kind", "limit"), [("list", 33), ("payment", 35)])
def test_files_of_a_request_on_the_reference(trace_reference, kind, limit):
    files = trace_reference(kind)
    assert len(files) <= limit, " ".join(files)


@pytest.mark.parametrize(("kind", "limit"), [("list", 35), ("payment", 38)])
def test_files_of_a_request_on_the_fast_path(trace_fast_path, kind, limit):
    files = trace_fast_path(kind)
    assert len(files) <= limit, " ".join(files)


@pytest.mark.parametrize("app", ["orders", "payments"])
def test_resource_is_under_100_lines(app):
    """The resources that only declare; what users and posts write beside that is rules of their own."""
    files = [path for name in RESOURCE_FILES if (path := CHECKOUT / app / name).exists()]
    assert sum(len(path.read_text().splitlines()) for path in files) < 100
