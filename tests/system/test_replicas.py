"""Rows come from a standby, which falls behind, is lost and comes back, and no user sees less than it has seen."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import psycopg
import pytest

from config.postgresql.database_url import SECONDS_TO_CONNECT_TO_EACH
from tests.service import Copy, wait_for
from tests.system.deployment import MARGIN, Deployment, deploy, frozen
from tests.system.standby import Pair, fetch, kill_machine, replicated

MAX_LAG = 1.0


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with replicated(synchronous_commit="on") as servers:
        yield servers


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast path", "reference"])
def deployment(request: pytest.FixtureRequest, pair: Pair, checkout: Copy) -> Iterator[Deployment]:
    variables = {"FAST_PATH": request.param}
    with deploy(checkout, pair, pair.primary.url, **variables) as deployed:
        yield deployed


@pytest.fixture
def reading(deployment: Deployment) -> Deployment:
    """Whatever a test did before, the user reads from the replica again."""
    wait_for(deployment.reads_from_replica)
    return deployment


def test_a_user_sees_its_own_writes_at_once_and_never_less_than_before(reading: Deployment) -> None:
    with reading.paused():
        assert reading.read_name() != reading.rename(reading.administrator)
        name = reading.rename(reading.user)
        assert [reading.read_name() for _ in range(8)] == [name] * 8
        # Which it now sees, too, for it reads on the primary.
        seen = reading.rename(reading.administrator)
        assert reading.read_name() == seen
    # While the replica has shown the user's own write, and not yet this one.
    began = time.monotonic()
    while time.monotonic() - began < MAX_LAG:
        assert reading.read_name() == seen


def test_what_others_write_is_seen_in_time_though_the_replica_falls_behind(reading: Deployment) -> None:
    with reading.paused():
        name = reading.rename(reading.administrator)
        assert reading.read_name() != name
        assert wait_for(lambda: reading.read_name() == name) < MAX_LAG + MARGIN
        later = reading.rename(reading.administrator)
        assert reading.read_name() == later
    began = time.monotonic()
    while time.monotonic() - began < MAX_LAG:
        assert reading.read_name() == later


def test_where_requests_read_the_primary_is_not_asked_for_its_position_alone(reading: Deployment) -> None:
    silent = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_walfile_name(%'"
        " AND query_start < now() - interval '1 second'"
    )
    began = time.monotonic()
    while time.monotonic() - began < 2:
        reading.read_name()
    # The slow lanes, from which nobody has read, ask on.
    assert fetch(reading.pair.primary, silent) > 0
    assert reading.reads_from_replica()


def test_who_was_told_by_a_credential_is_told_the_same_by_rows(reading: Deployment) -> None:
    with reading.paused():
        name = reading.rename(reading.administrator)
        told = reading.call(reading.user, "GET", "/api/v2/protected")
        assert json.loads(told.body)["data"]["user"]["name"] == name
        assert reading.read_name() == name


def test_who_was_refused_for_what_others_wrote_is_shown_that(reading: Deployment) -> None:
    created = reading.call(reading.user, "POST", f"{reading.path}/posts", {"title": "T"})
    path = f"/api/v2/posts/{json.loads(created.body)['data']['id']}"
    wait_for(reading.reads_from_replica)
    with reading.paused():
        assert reading.call(reading.administrator, "DELETE", path).status == 204
        assert reading.call(reading.user, "PATCH", path, {"title": "U"}).status == 404
        assert reading.call(reading.user, "GET", path).status == 404


@pytest.mark.parametrize(
    ("is_own", "body", "status"), [(False, {"title": "U"}, 403), (True, {"title": ""}, 400)], ids=["another's", "own"]
)
def test_who_was_refused_for_a_row_that_is_there_is_shown_that(
    reading: Deployment, is_own: bool, body: object, status: int
) -> None:
    told = json.loads(reading.call(reading.administrator, "GET", "/api/v2/protected").body)
    owner = reading.path if is_own else f"/api/v2/users/{told['data']['user']['id']}"
    with reading.paused():
        created = reading.call(reading.administrator, "POST", f"{owner}/posts", {"title": "T"})
        path = f"/api/v2/posts/{json.loads(created.body)['data']['id']}"
        assert reading.call(reading.user, "GET", path).status == 404
        assert reading.call(reading.user, "PATCH", path, body).status == status
        assert reading.call(reading.user, "GET", path).status == 200


def test_requests_of_nobody_move_no_position(deployment: Deployment) -> None:
    assert deployment.call("", "POST", "/api/v2/logout", {"refresh_token": "unknown"}).status == 204
    assert deployment.call("", "GET", "/health/ready").status == 200


def test_entity_tags_of_a_user_never_go_back(reading: Deployment) -> None:
    before = reading.call(reading.user, "GET", reading.path).headers["ETag"]
    reading.rename(reading.user)
    present = reading.call(reading.user, "GET", reading.path).headers["ETag"]
    assert present != before
    for _ in range(20):
        assert reading.call(reading.user, "GET", reading.path, **{"If-None-Match": before}).status == 200
        assert reading.call(reading.user, "GET", reading.path, **{"If-None-Match": present}).status == 304


def test_a_write_whose_note_waits_is_answered_when_that_is_made(reading: Deployment) -> None:
    """Other processes do not know until then that the user is to read on the primary."""
    with reading.paused(), ThreadPoolExecutor(1) as pool, psycopg.connect(reading.pair.primary.url) as other:
        other.execute("SELECT FROM config_readposition FOR UPDATE")
        renaming = pool.submit(reading.rename, reading.user)
        time.sleep(0.5)
        assert not renaming.done()
        other.rollback()
        name = renaming.result()
        assert [reading.read_name() for _ in range(8)] == [name] * 8


def test_the_last_use_of_a_key_that_was_shown_is_shown_again(reading: Deployment, checkout: Copy) -> None:
    """It is committed without waiting for the WAL, which nothing else writes here."""
    primary = reading.pair.primary
    email = fetch(primary, f"SELECT email FROM users_user WHERE id = {reading.path.rpartition('/')[2]}")  # noqa: S608
    database = {"LOCAL": "true", "DATABASE_URL": primary.url}
    key = checkout.manage("create_api_key", email, **database).stdout.strip()
    newest = fetch(primary, "SELECT max(id) FROM accounts_apikey")
    path = f"/api/v2/api-keys/{newest}"

    def read_last_use() -> str | None:
        answer = reading.call(key, "GET", path)
        assert answer.status == 200, answer
        return str(json.loads(answer.body)["data"]["last_used_at"])

    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
        try:
            with reading.paused():
                # So that the user reads on the primary.
                reading.rename(reading.user)
                shown = read_last_use()
            assert shown
            for _ in range(20):
                assert read_last_use() == shown
                time.sleep(0.05)
        finally:
            connection.execute("ALTER SYSTEM RESET wal_writer_delay")
            connection.execute("SELECT pg_reload_conf()")


def test_lists_and_streams_come_from_the_replica(reading: Deployment) -> None:
    newest_first = "/api/v2/posts?sort=id&order=desc"
    with reading.paused():
        post = {"title": "T", "body": "B"}
        created = reading.call(reading.administrator, "POST", f"{reading.path}/posts", post)
        assert created.status == 201, created
        number = json.loads(created.body)["data"]["id"]
        own_list, others_list = (
            reading.call(credential, "GET", "/api/v2/posts?sort=id&order=desc&page=1&limit=1&envelope=false")
            for credential in (reading.administrator, reading.user)
        )
        ((own,), (others,)) = (json.loads(answer.body) for answer in (own_list, others_list))
        assert own["id"] == number
        assert others["id"] < number
        assert int(others_list.headers["X-Total-Count"]) == int(own_list.headers["X-Total-Count"]) - 1
        stream = reading.call(reading.user, "GET", newest_first, Accept="application/x-ndjson")
        assert stream.status == 200
        assert json.loads(stream.body.partition(b"\n")[0])["id"] == others["id"]


def test_log_ins_and_lists_of_the_admin(reading: Deployment, checkout: Copy) -> None:
    change = (
        "u = User.objects.filter(role='admin', status='active').earliest('id'); u.set_password(%r); u.save();"
        " print(u.email)"
    )
    password = "a long pass phrase for this test"
    url = reading.pair.primary.url
    done = checkout.manage(
        "shell", "-c", f"from users.models import User; {change % password}", DATABASE_URL=url, LOCAL="true"
    )
    assert done.returncode == 0, done.stderr
    log_in = {"email": done.stdout.split()[-1], "password": password}
    answer = reading.call("", "POST", "/api/v2/login", log_in)
    assert answer.status == 200, answer
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    login = f"{reading.service.url}/session/login"
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', opener.open(login).read().decode())[0]
    form = {
        "csrfmiddlewaretoken": token,
        "username": done.stdout.split()[-1],
        "password": password,
        "next": "/admin/users/user/",
    }
    opener.open(login, urlencode(form).encode())

    def read_names() -> str:
        with opener.open(f"{reading.service.url}/admin/users/user/?q={reading.path.rpartition('/')[2]}") as page:
            return str(page.read().decode())

    wait_for(lambda: reading.read_name() in read_names())
    with reading.paused():
        before = reading.read_name()
        name = reading.rename(reading.user)
        page = read_names()
        assert before in page
        assert name not in page


@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
def test_a_replica_that_is_silent_delays_reads_for_a_moment(reading: Deployment, media_type: str) -> None:
    path = reading.path if media_type == "application/json" else "/api/v2/posts"
    longest = 0.0
    with frozen(reading.pair.standby):
        began = time.monotonic()
        while time.monotonic() - began < 4:
            asked = time.monotonic()
            assert reading.call(reading.user, "GET", path, Accept=media_type).status == 200
            longest = max(longest, time.monotonic() - asked)
    # One that is just connecting waits until it gives up.
    assert longest < SECONDS_TO_CONNECT_TO_EACH + 2 * MARGIN


def test_a_replica_that_is_killed_fails_no_read_and_is_used_again(reading: Deployment) -> None:
    kill_machine(reading.pair.standby)
    for _ in range(20):
        # Each part of the query is read once more, too.
        answer = reading.call(reading.user, "GET", f"{reading.path}?envelope=false&fields=id,name&include=orders")
        assert answer.status in {200, 400}, answer
        assert reading.call(reading.user, "GET", f"{reading.path}?envelope=false&fields=id,name").status == 200
    reading.pair.standby.start()
    wait_for(reading.reads_from_replica)


def test_a_primary_that_has_lost_its_mark_gets_it_again(reading: Deployment) -> None:
    primary = reading.pair.primary
    timeline = fetch(primary, "DELETE FROM config_timeline RETURNING name")
    wait_for(lambda: fetch(primary, "SELECT max(name) FROM config_timeline") == timeline)
    wait_for(reading.reads_from_replica)


_READ_ON_A_NEW_CONNECTION = """
import os, signal
from config.http.request_state import RequestState, present_state
from config.postgresql.replicas.watch import Replicas
from django.conf import settings
from django.db import Error, connections

(alias,) = settings.REPLICAS
replicas = Replicas([alias], 60.0)
replica = replicas._replicas[alias]
while not replica.is_live:
    replicas._look_at_primary()
    replicas._look_at_replica(replica)
present_state.set(RequestState(replica=alias))
print("looked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
connections[alias].close()
if os.environ["LEAVES"]:
    replicas.leave(alias, "silent")
try:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")
    print("read", replica.is_live)
except Error:
    print("refused", replica.is_live)
"""


@pytest.mark.parametrize(
    ("goes_back", "leaves"),
    [(True, False), (False, False), (False, True)],
    ids=["behind", "as far", "left out"],
)
def test_a_replica_that_came_back_between_two_looks_is_not_read_behind_what_it_was(
    another_pair: Pair, checkout: Copy, goes_back: bool, leaves: bool
) -> None:
    primary, standby = another_pair
    variables = {"LOCAL": "true", "DATABASE_URL": primary.url, "DATABASE_REPLICA_URLS": standby.url}
    variables["LEAVES"] = "yes" if leaves else ""
    checkout.manage("migrate", **variables)
    wait_for(lambda: fetch(standby, "SELECT to_regclass('config_timeline') IS NOT NULL"))
    script = ("shell", "--no-imports", "-c", _READ_ON_A_NEW_CONNECTION)
    process = checkout.start(".venv/bin/python", "manage.py", *script, **variables)
    try:
        assert process.stdout
        assert process.stdout.readline() == "looked\n"
        if goes_back:
            with psycopg.connect(standby.url, autocommit=True) as connection:
                # Heeded from the next start on: then it replays no further than it must to be consistent.
                connection.execute("ALTER SYSTEM SET recovery_min_apply_delay = '1h'")
            kill_machine(standby)
            standby.start()
        wait_for(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        process.send_signal(signal.SIGCONT)
        answer, _ = process.communicate(timeout=30)
        assert answer == ("refused False\n" if goes_back or leaves else "read True\n")
    finally:
        # It has stopped itself, and would stay.
        process.kill()


@pytest.fixture
def another_pair() -> Iterator[Pair]:
    with replicated(synchronous_commit="on") as servers:
        yield servers
