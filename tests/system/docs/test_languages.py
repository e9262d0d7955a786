"""The exchanges and functions of the guide in Python and JavaScript, and its programs, which are killed and go on."""

import json
import socket
import subprocess
import sys
from base64 import b64decode
from threading import Thread
from typing import Any

import httpx
import pytest
from django.utils import timezone

from config.events.webhooks.deliverer import deliver
from config.models import Event, WebhookDelivery
from config.site import examples
from orders.models import Order
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import wait_for_events
from tests.docs.exchanges import (
    PAGES_WITH_EXCHANGES,
    PAGES_WITH_FUNCTIONS,
    check_exchanges,
    matches,
    read_blocks,
)
from tests.docs.languages import LANGUAGES, JavaScript
from tests.service import find_free_port, wait_for
from users.models import User


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", PAGES_WITH_EXCHANGES)
def test_every_exchange_prints_what_is_shown(page, language, variables, request):
    check_exchanges(page, language, variables, request)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", PAGES_WITH_FUNCTIONS)
def test_every_function_does_what_is_shown(page, language, variables):
    printed: list[str] = []
    compared = 0
    for _, info, block in read_blocks(page):
        if info == language.name:
            printed += [" ".join(map(as_text, values)) for values in language.run(block, variables)]
        elif info == "printed":
            compared += 1
            assert matches(block.splitlines(), printed), (page, printed)
            printed.clear()
    assert compared >= 2
    assert not printed


def test_password_beyond_latin_1_is_sent_in_utf_8():
    node = JavaScript()
    node.run("const fetch = async (url, { headers }) => ({ json: () => headers.Authorization })", {})
    (exchange,) = examples.read_session('$ curl -u "zo\u00eb@example.com:$PASSWORD" $API/users\n{}\n')
    ((sent,),) = node.call(exchange, {"API": "", "PASSWORD": "10 \u20ac"})
    node.close()
    assert b64decode(sent.removeprefix("Basic ")).decode() == "zo\u00eb@example.com:10 \u20ac"


def is_listening(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LANGUAGES)
def test_client_of_the_authorization_code_gets_tokens(variables, settings, make_user, name):
    settings.LOCAL = True
    person, port = Person(make_user()), find_free_port()
    client = register(public=True, redirect_uris=f"http://127.0.0.1:{port}/callback")
    given = [variables["ORIGIN"], client.client_id, client.row.redirect_uris, "users:read orders:read"]
    (code,) = [block for _, info, block in read_blocks("oauth") if info == name]

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
    (code,) = [block for _, info, block in read_blocks("webhooks") if info == name]
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
            wait_for(lambda: is_listening(port))
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
    follow = next(block for _, info, block in read_blocks("events") if info == name)
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
