"""How many functions are called for each request that the benchmarks send: what the fast path is there to keep small.

The counts are those of a warm process, of Python's functions and of C's, and stand in calls.json. They depend on no
machine, but on the versions of Python and of the libraries. After a change that is meant to move them, write them anew:

    RECORD_CALLS=true python -m pytest tests/fastpath/test_calls.py -n 0
"""

import cProfile
import gc
import json
import os
import pstats
import sys
from io import BytesIO
from itertools import count
from pathlib import Path

import pytest
from django.db import connection

from accounts import logins
from benchmarks.cases import BODIES, CASES
from config.server.answers import answer
from tests.conftest import own_session

RECORDED = Path(__file__).with_name("calls.json")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = 0.05
# Enough for pages beyond the offset to which rows are stepped over.
USERS = 2_400
FILL_USERS = """
INSERT INTO users_user (name, email, password, role, status)
SELECT 'N', n || '@example.com', '!', (ARRAY['user', 'support'])[1 + n %% 2],
    (ARRAY['active', 'inactive'])[1 + n / 2 %% 2]
FROM generate_series(1, %s) AS n
"""
FILL_ORDERS = "INSERT INTO orders_order (user_id, item, qty) SELECT id, 'T', 2 FROM users_user, generate_series(1, 3)"
_keys = count()


def build_environ(path, token, body=None, key=""):
    """The environment of a request as `config.server.rsgi` makes it of what a client of the benchmarks sends."""
    path, _, query = path.partition("?")
    content = b"" if body is None else json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": "GET" if body is None else "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": f"/api/v1{path}",
        "QUERY_STRING": query,
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "https",
        "wsgi.input": BytesIO(content),
        "CONTENT_LENGTH": str(len(content)),
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT": "application/json",
        "HTTP_AUTHORIZATION": f"Bearer {token}",
    }
    if body is not None:
        environ["CONTENT_TYPE"] = "application/json"
    return environ | ({"HTTP_IDEMPOTENCY_KEY": key} if key else {})


@pytest.fixture
def token(transactional_db, make_user, settings):
    settings.DEBUG = False
    caller = make_user("support")
    with connection.cursor() as cursor:
        cursor.execute(FILL_USERS, [USERS])
        cursor.execute(FILL_ORDERS)
    return str(logins.log_in(caller).access)


def get_path(case, token):
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM users_user WHERE role = 'user' ORDER BY id LIMIT 1")
        ((user,),) = cursor.fetchall()
    match case:
        case "get_user":
            return f"/users/{user}"
        case "user_orders":
            return f"/users/{user}/orders"
        case "list_cursor":
            page = answer(None, build_environ("/users?cursor=&limit=20", token))
            cursor = json.loads(page.body)["meta"]["nextCursor"]
            return f"/users?cursor={cursor}&limit=20"
    query = {
        "list_first": "page=1&limit=20",
        "list_mid": f"page={USERS // 40}&limit=20",
        "list_last": f"page={USERS // 20}&limit=20",
        "list_filter": "status=inactive&role=support&page=1&limit=20",
    }
    return f"/users?{query[case]}"


def profile(case, token):
    """The profile of a case in a warm process. A request that does not take the fast path fails: it has no Django."""
    path, body = BODIES.get(case) or (get_path(case, token), None)

    def build():
        key = f"calls-{next(_keys)}" if case == "post_payment" else ""
        return build_environ(path, token, body, key)

    return profile_warm(build, 200 if body is None else 201)


def profile_warm(build, status):
    for _ in range(5):
        assert answer(None, build()).status == status
    # The least of three: one of them may be the request after which what is written every some seconds is written.
    return min((_profile_once(build()) for _ in range(3)), key=lambda profiled: profiled.total_calls)


def _profile_once(environ):
    profiler = cProfile.Profile()
    # What is collected while it runs is of other tests.
    gc.collect()
    gc.disable()
    try:
        profiler.runcall(answer, None, environ)
    finally:
        gc.enable()
    return pstats.Stats(profiler)


def get_recorded():
    return json.loads(RECORDED.read_text())


def test_counts_are_of_the_cases_of_the_benchmarks():
    assert get_recorded()["calls"].keys() == set(CASES)


@own_session
@pytest.mark.parametrize("case", CASES)
def test_calls_of_a_request(case, token):
    calls = profile(case, token).total_calls
    if os.environ.get("RECORD_CALLS") == "true":
        recorded = get_recorded()["calls"] if RECORDED.exists() else {}
        recorded = {name: (recorded | {case: calls}).get(name, 0) for name in CASES}
        RECORDED.write_text(json.dumps({"python": PYTHON, "calls": recorded}, indent=2) + "\n")
    recorded = get_recorded()
    if recorded["python"] != PYTHON:
        pytest.skip(f"The counts are of Python {recorded['python']}.")
    expected = recorded["calls"][case]
    assert calls == pytest.approx(expected, rel=TOLERANCE), f"{case}: {calls} calls, recorded were {expected}"


def test_replay_takes_less_than_what_it_repeats(token):
    """In an outage all clients retry at once."""
    path, body = BODIES["post_payment"]
    replayed = profile_warm(lambda: build_environ(path, token, body, "calls-again"), 201).total_calls
    assert replayed < 0.75 * profile("post_payment", token).total_calls
