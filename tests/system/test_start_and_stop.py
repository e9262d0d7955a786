"""Starting, finding again and stopping everything that `make run` is."""

import json
import os
import re
import signal
import socket
import time
import urllib.request
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import Copy, Service, get_key, wait_for


def test_later_start_keeps_the_data_and_tells_how_to_get_a_key(checkout: Copy, first_start: list[str]) -> None:
    later = Service(checkout)
    try:
        assert later.lines == [
            "Administrator: admin@example.com",
            "Another API key: .venv/bin/python manage.py create_api_key admin@example.com",
            "Another password: .venv/bin/python manage.py changepassword admin@example.com",
            f"Address: {later.url}",
        ]
        assert later.status() == 200
    finally:
        later.stop()


def test_start_prints_the_addresses_of_the_pages_for_people(checkout: Copy, first_start: list[str]) -> None:
    service = Service(checkout)
    try:
        assert service.process.stdout
        printed = [service.process.stdout.readline().rstrip("\n") for _ in range(3)]
        assert printed == [
            f"Documentation: {service.url}/docs",
            f"Sign in: {service.url}/session/login",
            f"Admin: {service.url}/admin/",
        ]
        for line in printed:
            with urllib.request.urlopen(line.partition(": ")[2], timeout=10) as page:  # noqa: S310 - our own service
                assert page.headers["Content-Type"].startswith("text/html")
    finally:
        service.stop()


def test_reference_is_a_client_from_the_first_start_on(checkout: Copy, first_start: list[str]) -> None:
    """On another port than at the first start, too."""
    service = Service(checkout)
    try:
        with urllib.request.urlopen(f"{service.url}/docs", timeout=10) as page:  # noqa: S310 - our own service
            text = page.read().decode()
        found = dict(re.findall(r'data-(redirect|client)="([^"]*)"', text))
        request = {"response_type": "code", "client_id": found["client"], "redirect_uri": found["redirect"]}
        request |= {"scope": "users:read", "state": "s", "code_challenge_method": "S256", "code_challenge": "c" * 43}
        # Somebody who is not signed in is sent to the sign-in page, and not told that the request is refused.
        with urllib.request.urlopen(f"{service.url}/oauth/authorize?{urlencode(request)}", timeout=10) as page:  # noqa: S310 - our own service
            assert urlsplit(page.url).path == "/session/login"
    finally:
        service.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_stop_leaves_no_process_and_exit_code_0(checkout: Copy, first_start: list[str], number: signal.Signals) -> None:
    service = Service(checkout)
    with socket.create_connection(("127.0.0.1", service.port)):
        # Ctrl-C goes to the whole group of processes, SIGTERM to the one that was started.
        if number == signal.SIGINT:
            os.killpg(service.process.pid, number)
        assert service.stop(number) == 0
    assert checkout.processes() == {}


def test_requests_that_wait_for_a_busy_worker_are_answered_although_the_service_is_stopped(
    checkout: Copy, first_start: list[str]
) -> None:
    headers = {"X-API-Key": get_key(first_start)}
    headers["Content-Type"] = "application/json"
    service = Service(checkout, WORKERS="1")

    def sent(method: str, path: str, **body: str) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
        connection.request(method, path, json.dumps(body), headers)
        time.sleep(0.3)
        return connection

    with psycopg.connect(Cluster(get_accessible_folder(checkout.folder / ".data/postgresql")).url) as blocking:
        # The one worker waits for this row, and what comes meanwhile for the worker.
        (user,) = blocking.execute("SELECT id FROM users_user WHERE role = 'user' LIMIT 1 FOR UPDATE").fetchone() or ()
        waiting = [sent("PATCH", f"/api/v1/users/{user}", name="Waited")]
        waiting += [sent("POST", "/api/v1/users", name="New", email=f"new{number}@example.com") for number in range(3)]
        service.process.terminate()
        time.sleep(0.3)
        blocking.rollback()
        assert [connection.getresponse().status for connection in waiting] == [200, 201, 201, 201]
    for connection in waiting:
        connection.close()
    assert service.stop() == 0


def test_each_client_is_told_to_close_its_connection_before_idle_ones_are_closed(
    checkout: Copy, first_start: list[str]
) -> None:
    """A request that is on its way while its connection is closed would be lost."""
    service = Service(checkout, WORKERS="1")

    def ask(connection: HTTPConnection) -> str | None:
        connection.request("GET", "/health/live")
        response = connection.getresponse()
        assert (response.status, response.read() != b"") == (200, True)
        return response.getheader("Connection")

    address = ("127.0.0.1", service.port)
    with closing(HTTPConnection(*address, timeout=30)) as one, closing(HTTPConnection(*address, timeout=30)) as other:
        assert (ask(one), ask(other)) == (None, None)
        service.process.terminate()
        for connection in (one, other):
            while ask(connection) is None:
                pass
            assert connection.sock is None
    assert service.stop() == 0


def test_stop_of_make_leaves_no_process(checkout: Copy, first_start: list[str]) -> None:
    service = Service(checkout, "make", "--silent", "run")
    assert service.status() == 200
    service.stop()
    assert checkout.processes() == {}


def test_stop_during_the_first_start_leaves_no_process(fresh_checkout: Copy) -> None:
    process = fresh_checkout.start(".venv/bin/python", "manage.py", "serve", PORT="1024")
    wait_for((fresh_checkout.folder / ".data/postgresql/data.draft").exists)
    process.terminate()
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "", "")
    assert fresh_checkout.processes() == {}


def test_killed_service_takes_its_workers_along_and_starts_again(checkout: Copy, first_start: list[str]) -> None:
    killed = Service(checkout)
    workers = set(killed.workers())
    assert workers
    killed.stop(signal.SIGKILL)
    wait_for(lambda: not workers & checkout.processes().keys(), seconds=5)
    again = Service(checkout)
    assert again.status() == 200
    assert again.stop() == 0
    assert checkout.processes() == {}


def test_port_in_use_ends_the_start_with_one_line(service: Service) -> None:
    second = service.copy.manage("serve", PORT=str(service.port))
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == f"CommandError: Cannot listen on 127.0.0.1:{service.port}: Address already in use\n"
    assert service.status() == 200


def test_address_of_another_machine_ends_the_start_with_one_line(checkout: Copy) -> None:
    # RFC 5737: no machine has it.
    started = checkout.manage("serve", HOST="192.0.2.1", PORT="8000")
    assert (started.returncode, started.stdout) == (1, "")
    assert started.stderr == "CommandError: Cannot listen on 192.0.2.1:8000: Cannot assign requested address\n"
