"""`manage.py deliver` beside the service: killed again and again, no message is lost, and each works once."""

import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

from tests.service import Service, get_key, wait_for

INVITED, KILLS = 20, 5


def find_deliverers(service: Service) -> list[int]:
    return [pid for pid, command in service.copy.processes().items() if "manage.py deliver" in command]


def post(service: Service, path: str, body: dict[str, str], **headers: str) -> tuple[int, bytes]:
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(f"{service.url}{path}", json.dumps(body).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()


def test_killed_deliverer_loses_no_message_and_each_link_works_once(service: Service, first_start: list[str]) -> None:
    key = {"X-API-Key": get_key(first_start)}
    kills = 0
    for number in range(INVITED):
        _, added = post(service, "/users", {"name": "New", "email": f"invited{number}@example.com"}, **key)
        status, _ = post(service, f"/users/{json.loads(added)['data']['id']}/invitations", {}, **key)
        assert status == 202
        if number % (INVITED // KILLS) == 0:
            wait_for(lambda: find_deliverers(service))
            for pid in find_deliverers(service):
                os.kill(pid, signal.SIGKILL)
                kills += 1
    folder = Path(service.copy.folder / ".data/mail")
    wait_for(lambda: len([*folder.glob("*.eml")]) == INVITED)
    assert kills >= KILLS
    tokens = [re.search(r"/session/reset/(\S+)", file.read_text())[1] for file in folder.glob("*.eml")]
    for token in tokens:
        used = [post(service, f"/api/password-resets/{token}", {"password": "four plain words"})[0] for _ in range(2)]
        assert used == [204, 404]


def test_deliverer_ends_with_the_service(service: Service) -> None:
    wait_for(lambda: find_deliverers(service))
    (pid,) = find_deliverers(service)
    other = Service(service.copy)
    wait_for(lambda: len(find_deliverers(service)) == 2)
    assert other.stop() == 0
    assert find_deliverers(service) == [pid]
