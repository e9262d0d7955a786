"""Every exchange and every function of the guide, in each of the languages that the pages show."""

import json
import re
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from accounts.services import create_api_key
from config.events.representation import Place, seal_place
from config.events.webhooks.deliverer import deliver
from config.management.demo.load import load_demo_data
from config.models import Event, WebhookDelivery
from config.site import documentation, examples
from orders.models import Order
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import PASSWORD, wait_for_events, wait_until
from tests.docs.exchanges import SITUATIONS, Exchange, given_by, matches
from tests.docs.languages import JavaScript, Language, Python, Shell
from tests.service import CHECKOUT
from users import services
from users.models import User

GUIDE = Path(documentation.GUIDE_FOLDER)
_PART = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```(?P<info>\w*)\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = ("python", "javascript")
PAGES_WITH_FUNCTIONS = ("import-users", "walking-lists", "whole-lists", "retries", "polling", "events")


@pytest.fixture(params=[Python, JavaScript], ids=lambda kind: kind.name)
def language(request: pytest.FixtureRequest) -> Iterator[Language]:
    running = request.param()
    yield running
    running.close()


@pytest.fixture
def variables(
    transactional_db: None, live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The demo data behind a server, and what the examples call by name."""
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 600, 60
    settings.PUBLIC_URL = live_server.url
    # An open connection of the server's threads would prevent dropping the database.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    load_demo_data()
    administrator = services.create(name="Administrator", email="admin@example.com", role="admin", password=PASSWORD)
    key = create_api_key(administrator, name="First key")[1]
    robot = register(administrator, grant="client-credentials", redirect_uris="")
    wait_for_events()
    return {
        "KEY": key,
        "PASSWORD": PASSWORD,
        "CLIENT": robot.client_id,
        "SECRET": robot.secret,
        "ORIGIN": live_server.url,
        "API": f"{live_server.url}/api/v2",
        "LONG": "x" * 100 * 1024,
        "EXPIRED_CURSOR": seal_place(Place(uuid4(), 1, 1)),
    }


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """The blocks of a page: the heading above each, its language and its text."""
    heading = ""
    file = CHECKOUT / "README.md" if page == "README" else GUIDE / f"{page}.md"
    for part in _PART.finditer(file.read_text()):
        heading = part["heading"] or heading
        if part["block"]:
            yield heading.strip("`"), part["info"], part["block"]


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize(
    ("language", "page"),
    [(Shell, "README"), *product((Shell, Python, JavaScript), documentation.PAGES)],
    indirect=["language"],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_exchange_prints_what_is_shown(page, language, variables, request):
    if page == "errors":
        request.getfixturevalue("one_minute")
    for heading, info, block in blocks(page):
        if info != "console":
            continue
        for exchange in examples.read_session(block):
            if not exchange.is_call:
                continue
            with SITUATIONS.get(heading, nullcontext)():
                printed = list(language.call(exchange, variables))
            told = exchange.printed.replace("http://127.0.0.1:8000", variables["ORIGIN"])
            shown = Exchange(heading, exchange.command, told, shows_head=" -i " in exchange.command)
            if exchange.has_body:
                (body,) = printed.pop()
                assert matches(shown.expected_body, body), (exchange.command, body)
                variables |= given_by(body)
            head = list(printed.pop()) if printed else []
            expected = [shown.expected_status, *shown.expected_headers.values()] if shown.shows_head else []
            assert matches(expected, head), (exchange.command, head)
            if "ETag" in shown.expected_headers and examples.parse_command(exchange.command).method == "GET":
                variables["ETAG"] = head[1 + list(shown.expected_headers).index("ETag")]
            assert not printed


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_password_beyond_latin_1_is_sent_in_utf_8():
    node = JavaScript()
    node.run("const fetch = async (url, { headers }) => ({ json: () => headers.Authorization })", {})
    (exchange,) = examples.read_session('$ curl -u "zo\u00eb@example.com:$PASSWORD" $API/users\n{}\n')
    ((sent,),) = node.call(exchange, {"API": "", "PASSWORD": "10 \u20ac"})
    node.close()
    assert b64decode(sent.removeprefix("Basic ")).decode() == "zo\u00eb@example.com:10 \u20ac"


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", PAGES_WITH_FUNCTIONS)
def test_every_function_does_what_is_shown(page, language, variables):
    printed: list[str] = []
    compared = 0
    for _, info, block in blocks(page):
        if info == language.name:
            printed += [" ".join(map(as_text, values)) for values in language.run(block, variables)]
        elif info == "printed":
            compared += 1
            assert matches(block.splitlines(), printed), (page, printed)
            printed.clear()
    assert compared >= 2
    assert not printed


def test_functions_stand_in_both_languages():
    for page in documentation.PAGES:
        infos = [info for _, info, _ in blocks(page) if info in LANGUAGES]
        assert infos == ["python", "javascript"] * (len(infos) // 2)
        assert bool(infos) == (page in (*PAGES_WITH_FUNCTIONS, "oauth", "webhooks"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LANGUAGES)
def test_client_of_the_authorization_code_gets_tokens(variables, settings, make_user, name):
    settings.LOCAL = True
    person, port = Person(make_user()), find_free_port()
    client = register(public=True, redirect_uris=f"http://127.0.0.1:{port}/callback")
    given = [variables["ORIGIN"], client.client_id, client.row.redirect_uris, "users:read orders:read"]
    (code,) = [block for _, info, block in blocks("oauth") if info == name]

    def consent(address: str) -> str:
        """What the person does: allows it. Returns where the browser is sent to."""
        answer = person.browser.post(address.removeprefix(variables["ORIGIN"]), {"decision": "approve"})
        assert answer.status_code == 302, answer.content
        return str(answer["Location"])

    if name == "python":
        names: dict[str, Any] = {}
        exec(compile(code, "<guide>", "exec"), names)  # noqa: S102 - our own page
        # The client waits for the browser in this thread.
        open_browser = lambda address: Thread(target=httpx.get, args=[consent(address)]).start()  # noqa: E731
        tokens = names["sign_in"](*given, open_browser=open_browser)
    else:
        call = f"console.log(JSON.stringify(await signIn(...{json.dumps(given)})))"
        command = [JavaScript.find_node(), "--input-type=module", "--eval", f"{code}\n{call}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            try:
                httpx.get(consent(process.stdout.readline().strip()))
                tokens = json.loads(process.stdout.read())
            finally:
                process.kill()
    assert tokens["scope"] == "users:read orders:read"
    assert bearer(tokens["access_token"]).get("/api/protected").data["user"]["id"] == person.user.pk


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LANGUAGES)
def test_receiver_of_webhooks_that_is_killed_misses_nothing(user, settings, tmp_path, name):
    settings.LOCAL = True
    port, file = find_free_port(), tmp_path / "events"
    made = user.post("/webhooks", {"url": f"http://127.0.0.1:{port}/", "types": ["order.created"]})
    (code,) = [block for _, info, block in blocks("webhooks") if info == name]
    call = f"receive({json.dumps(made.data['secret'])}, {port}, {json.dumps(str(file))})"
    interpreter = [sys.executable, "-c"] if name == "python" else [JavaScript.find_node(), "--input-type=module", "-e"]

    def attempt() -> None:
        wait_for_events()
        WebhookDelivery.objects.update(status="pending", due_at=timezone.now())
        deliver(once=True)

    orders = []
    for _ in range(2):
        orders.append(user.post("/orders", {"item": "Tea", "qty": 1}).data["id"])
        attempt()
        with subprocess.Popen([*interpreter, f"{code}\n{call}"]) as receiver:
            wait_until(lambda: is_listening(port))
            attempt()
            attempt()
            assert httpx.post(f"http://127.0.0.1:{port}/", json={}, headers={"webhook-id": "x"}).status_code == 401
            receiver.kill()
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"delivered"}
    stored = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"]["resource"]["id"] for line in stored] == orders


FOLLOWERS = {
    "python": """
import os, sys
from pathlib import Path
origin, key, name = sys.argv[1:]
file = Path(name)
def save(cursor):
    file.with_suffix(".new").write_text(cursor)
    os.replace(file.with_suffix(".new"), file)
client = httpx.Client(base_url=origin, headers={"X-API-Key": key}, trust_env=False)
for event in follow(client, file.read_text() if file.exists() else "", save, 0.05):
    print(event["id"], flush=True)
""",
    "javascript": """
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
const [origin, key, file] = process.argv.slice(1)
const save = (cursor) => { writeFileSync(`${file}.new`, cursor); renameSync(`${file}.new`, file) }
for await (const event of follow(origin, key, existsSync(file) ? readFileSync(file, "utf8") : "", save, 0.05))
  console.log(event.id)
""",
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", FOLLOWERS)
def test_follower_that_is_killed_and_started_again_misses_no_event(variables, settings, tmp_path, name):
    settings.RATE_LIMIT_PRINCIPAL = 0
    follow = next(block for _, info, block in blocks("events") if info == name)
    program = [sys.executable, "-c"] if name == "python" else [JavaScript.find_node(), "--input-type=module", "--eval"]
    command = [*program, follow + FOLLOWERS[name], variables["ORIGIN"], variables["KEY"], str(tmp_path / "cursor")]
    seen: list[int] = []
    user = User.objects.earliest("id")
    for lines in (30, 150, 1, 220):
        Order.objects.bulk_create(Order(user=user, item="Tea", qty=1) for _ in range(70))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            seen += [int(process.stdout.readline()) for _ in range(lines)]
            process.kill()
            # What it has told before it died, but for half a line.
            seen += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    last = Event.objects.latest("id").pk
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while seen[-1] != last:
            seen.append(int(process.stdout.readline()))
        process.kill()
    assert {*seen} == {*Event.objects.values_list("id", flat=True)}
    # What comes again is what was not saved: a page at each start.
    assert len(seen) - len({*seen}) <= 4 * 100
