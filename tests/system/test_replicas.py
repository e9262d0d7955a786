"""Rows come from a standby, which falls behind, is lost and comes back, and no user sees less than it has seen."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

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


def test_who_was_told_by_a_credential_is_told_the_same_by_rows(reading: Deployment) -> None:
    with reading.paused():
        name = reading.rename(reading.administrator)
        told = reading.call(reading.user, "GET", "/api/v2/protected")
        assert told.json()["data"]["user"]["name"] == name
        assert reading.read_name() == name


def test_who_was_refused_for_what_others_wrote_is_shown_that(reading: Deployment) -> None:
    created = reading.call(reading.user, "POST", f"{reading.path}/posts", {"title": "T"})
    path = f"/api/v2/posts/{created.json()['data']['id']}"
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
    told = reading.call(reading.administrator, "GET", "/api/v2/protected").json()
    owner = reading.path if is_own else f"/api/v2/users/{told['data']['user']['id']}"
    with reading.paused():
        created = reading.call(reading.administrator, "POST", f"{owner}/posts", {"title": "T"})
        path = f"/api/v2/posts/{created.json()['data']['id']}"
        assert reading.call(reading.user, "GET", path).status == 404
        assert reading.call(reading.user, "PATCH", path, body).status == status
        assert reading.call(reading.user, "GET", path).status == 200


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
        number = created.json()["data"]["id"]
        own_list, others_list = (
            reading.call(credential, "GET", "/api/v2/posts?sort=id&order=desc&page=1&limit=1&envelope=false")
            for credential in (reading.administrator, reading.user)
        )
        ((own,), (others,)) = (answer.json() for answer in (own_list, others_list))
        assert own["id"] == number
        assert others["id"] < number
        assert int(others_list.headers["X-Total-Count"]) == int(own_list.headers["X-Total-Count"]) - 1
        stream = reading.call(reading.user, "GET", newest_first, Accept="application/x-ndjson")
        assert stream.status == 200
        assert json.loads(stream.content.partition(b"\n")[0])["id"] == others["id"]


def test_log_in(reading: Deployment, checkout: Copy) -> None:
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
    answer = reading.call("", "POST", "/api/v2/login", {"email": done.stdout.split()[-1], "password": password})
    assert answer.status == 200, answer


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
