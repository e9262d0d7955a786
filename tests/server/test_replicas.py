"""Rows come from a standby, which falls behind, is lost and comes back, and no user sees less than it has seen."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from http.client import HTTPConnection
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import psycopg
import pytest

from config.local.cluster import Cluster
from config.postgresql.database_url import SECONDS_TO_CONNECT_TO_EACH
from config.server.readiness import MAX_SILENCE_SECONDS
from tests.server.conftest import Copy, Service, wait_for
from tests.server.standby import Pair, fetch, kill_machine, paused, replicated

MAX_LAG = 1.0
# For the look at a replica, and a busy machine.
MARGIN = 1.0
_numbers = count()


class Answer(NamedTuple):
    status: int
    headers: Any
    body: Any


class Deployment(NamedTuple):
    """A service with one replica, and two who use it."""

    service: Service
    pair: Pair
    administrator: str
    user: str
    path: str

    def call(self, credential: str, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """The answer to a request on a connection of its own, which any worker may get; empty is no credential."""
        sent = {"Content-Type": "application/json", **({"X-API-Key": credential} if credential else {}), **headers}
        with closing(HTTPConnection("127.0.0.1", self.service.port, timeout=30)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def rename(self, credential: str) -> str:
        """The new name of the user."""
        name = f"Name {next(_numbers)}"
        assert self.call(credential, "PATCH", self.path, {"name": name}).status == 200
        return name

    def get(self, credential: str) -> Answer:
        return self.call(credential, "GET", self.path)

    def read_name(self) -> str:
        answer = self.get(self.user)
        assert answer.status == 200, answer
        return str(json.loads(answer.body)["data"]["name"])

    def paused(self) -> AbstractContextManager[None]:
        return paused(self.pair.standby)

    def reads_from_replica(self) -> bool:
        with self.paused():
            name = self.rename(self.administrator)
            return self.read_name() != name


def _fetch(connection: psycopg.Connection[Any], sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row
    return row[0]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with replicated(Path(folder), synchronous_commit="on") as servers:
            yield servers


@contextmanager
def deploy(checkout: Copy, pair: Pair, url: str, **variables: str) -> Iterator[Deployment]:
    database = {"LOCAL": "true", "DATABASE_URL": url}
    replicas = {"DATABASE_REPLICA_URLS": pair.standby.url, "REPLICA_MAX_LAG": str(MAX_LAG)}
    service = Service(checkout, **database, **replicas, **variables)
    try:
        with psycopg.connect(pair.primary.url) as primary:
            first = (
                "SELECT DISTINCT ON (role) role, id, email FROM users_user WHERE status = 'active' ORDER BY role, id"
            )
            found = {role: (user_id, email) for role, user_id, email in primary.execute(first)}
        (_, administrator), (user_id, email) = found["admin"], found["user"]
        keys = [checkout.manage("create_api_key", name, **database).stdout.strip() for name in (administrator, email)]
        yield Deployment(service, pair, *keys, path=f"/api/v2/users/{user_id}")
    finally:
        service.stop()


@pytest.fixture(scope="module", params=["true", "false"], ids=["fast path", "reference"])
def deployment(request: pytest.FixtureRequest, pair: Pair, checkout: Copy) -> Iterator[Deployment]:
    with deploy(checkout, pair, pair.primary.url, FAST_PATH=request.param) as deployed:
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


@contextmanager
def frozen(server: Cluster) -> Iterator[None]:
    postmaster = psutil.Process(server._postmaster())
    processes = [postmaster, *postmaster.children(recursive=True)]
    # One whose connection was cut or closed may have ended meanwhile.
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


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
    with psycopg.connect(reading.pair.primary.url, autocommit=True) as primary:
        timeline = _fetch(primary, "DELETE FROM config_timeline RETURNING name")
        wait_for(lambda: primary.execute("SELECT name FROM config_timeline").fetchall() == [(timeline,)])
    wait_for(reading.reads_from_replica)


_READ_ON_A_NEW_CONNECTION = """
import os, signal
from config.postgresql.replicas import Replicas
from django.conf import settings
from django.db import Error, connections

(alias,) = settings.REPLICAS
replicas = Replicas([alias], 60.0)
replica = replicas._replicas[alias]
while not replica.is_live:
    replicas._look_at_primary()
    replicas._look_at_replica(replica)
print("looked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
connections[alias].close()
try:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")
    print("read", replica.is_live)
except Error:
    print("refused", replica.is_live)
"""


@pytest.mark.parametrize("goes_back", [True, False], ids=["behind", "as far"])
def test_a_replica_that_came_back_between_two_looks_is_not_read_behind_what_it_was(
    another_pair: Pair, checkout: Copy, goes_back: bool
) -> None:
    primary, standby = another_pair
    variables = {"LOCAL": "true", "DATABASE_URL": primary.url, "DATABASE_REPLICA_URLS": standby.url}
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
        assert answer == ("refused False\n" if goes_back else "read True\n")
    finally:
        # It has stopped itself, and would stay.
        process.kill()


@pytest.fixture
def another_pair() -> Iterator[Pair]:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with replicated(Path(folder), synchronous_commit="on") as servers:
            yield servers


@pytest.mark.parametrize(
    ("fast_path", "longest"),
    # The reference asks a connection whether it lives; when that is cut, it makes a new one.
    [("true", 2.0), ("false", 1.0 + SECONDS_TO_CONNECT_TO_EACH + MARGIN)],
    ids=["fast path", "reference"],
)
def test_what_waits_for_a_primary_that_is_silent_is_read_without_it(
    another_pair: Pair, checkout: Copy, fast_path: str, longest: float
) -> None:
    def freeze() -> tuple[float, float]:
        """How long reads waited at the most, and writes once the primary was known to be away."""
        reads, refusals = [], []
        with frozen(another_pair.primary), ThreadPoolExecutor(8) as pool:
            began = time.monotonic()
            while (asked := time.monotonic()) - began < 6:
                body = {"name": f"Name {next(_numbers)}"}
                written = pool.submit(deployment.call, deployment.user, "PATCH", deployment.path, body)
                read = [pool.submit(deployment.get, deployment.user) for _ in range(6)]
                assert not [answer for each in read if (answer := each.result()).status != 200]
                reads.append(time.monotonic() - asked)
                assert written.result().status == 503
                if asked > began + 3:
                    refusals.append(time.monotonic() - asked)
        wait_for(lambda: deployment.call(deployment.user, "PATCH", deployment.path, {"name": "N"}).status == 200)
        assert [deployment.read_name() for _ in range(8)] == ["N"] * 8
        return max(reads), max(refusals)

    variables = {"READ_ONLY_WITHOUT_PRIMARY": "true", "FAST_PATH": fast_path}
    with deploy(checkout, another_pair, another_pair.url, **variables) as deployment:
        wait_for(deployment.reads_from_replica)
        # On a busy machine one may be just connecting.
        waits, refusals = zip(*(freeze() for _ in range(2)), strict=True)
        assert min(waits) < longest
        assert min(refusals) < 0.5


def test_slow_reads_do_not_wait_for_a_silent_primary_and_short_ones_not_for_slow_ones(
    another_pair: Pair, checkout: Copy
) -> None:
    def read_slowly() -> tuple[int, float]:
        asked = time.monotonic()
        # Which may have a thousand lines.
        answer = deployment.call(deployment.user, "GET", deployment.path, **{"Content-Type": "application/x-ndjson"})
        return answer.status, time.monotonic() - asked

    variables = {"READ_ONLY_WITHOUT_PRIMARY": "true", "WORKERS": "1"}
    with deploy(checkout, another_pair, another_pair.url, **variables) as deployment, ThreadPoolExecutor(2) as pool:
        wait_for(deployment.reads_from_replica)
        # Whose connections are there, so that none of them is just connecting.
        for _ in range(8):
            assert [each.result()[0] for each in [pool.submit(read_slowly) for _ in range(2)]] == [200, 200]
        with frozen(another_pair.primary):
            began = time.monotonic()
            answers = [each.result() for each in [pool.submit(read_slowly) for _ in range(2)]]
            assert {status for status, _ in answers} <= {200, 503}
            assert max(seconds for _, seconds in answers) < 2
            wait_for(lambda: time.monotonic() - began > 2 * MAX_SILENCE_SECONDS)
            (worker,) = deployment.service.workers()
            (slow,) = psutil.Process(worker).children()
            slow.suspend()
            try:
                asked = time.monotonic()
                assert deployment.get(deployment.user).status == 200
                assert time.monotonic() - asked < MARGIN
            finally:
                slow.resume()


@pytest.mark.parametrize("goes_on", [True, False])
def test_reads_without_a_primary(another_pair: Pair, checkout: Copy, goes_on: bool) -> None:
    with deploy(checkout, another_pair, another_pair.url, READ_ONLY_WITHOUT_PRIMARY=str(goes_on).lower()) as deployment:
        wait_for(deployment.reads_from_replica)
        name = deployment.rename(deployment.user)
        wait_for(deployment.reads_from_replica)
        kill_machine(another_pair.primary)
        began = time.monotonic()
        if goes_on:
            wait_for(lambda: [deployment.get(deployment.user).status for _ in range(8)] == [200] * 8)
            assert time.monotonic() - began < 2
            assert deployment.service.status() == 200
        while time.monotonic() - began < 4:
            asked = time.monotonic()
            assert deployment.get(deployment.user).status == (200 if goes_on else 503)
            refused = deployment.call(deployment.user, "PATCH", deployment.path, {"name": "N"})
            assert refused.status == 503
            assert int(refused.headers["Retry-After"]) >= 1
            assert time.monotonic() - asked < MARGIN
        assert deployment.call("urs_unknown", "GET", deployment.path).status in {401, 503}

        with psycopg.connect(another_pair.standby.url, autocommit=True) as standby:
            assert _fetch(standby, "SELECT pg_promote()")
        wait_for(lambda: deployment.call(deployment.user, "PATCH", deployment.path, {"name": name}).status == 200)
        assert [deployment.read_name() for _ in range(8)] == [name] * 8
