"""The run of the tests fails when a secret is logged."""

import subprocess
from pathlib import Path
from secrets import token_urlsafe

import pytest

from tests.plugins.secrecy import BLOCK, LEAST_CHARACTERS, Watch
from tests.system.conftest import run_tests

SECRETS = {"password": "a pass phrase of its own", "api_key": "urs_in_the_query", "X-API-Key": "urs_in_the_header"}
TESTS = """
import json
import logging
from urllib.parse import quote
import django
from django.test import Client

django.setup()  # As a module of the service does that is imported later.

def test_that_uses_secrets():
    for password in ("a pass phrase of its own", " " * 12):
        Client().post("/health/live", {"password": password}, content_type="application/json")
    Client().get("/health/live?api_key=urs_in_the_query", headers={"X-API-Key": "urs_in_the_header"})

def test_that_logs():
    logging.getLogger("service").error("%s", LOGGED)
"""
LOGGED = {
    "as they are": "'a pass phrase of its own, urs_in_the_query and urs_in_the_header'",
    "in JSON and an address": "json.dumps([quote('a pass phrase of its own'), 'urs_in_the_query urs_in_the_header'])",
}


def run(folder: Path, logged: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Runs two tests, of which the second logs something."""
    return run_tests("tests.plugins.secrecy", folder, TESTS.replace("LOGGED", logged), *options)


@pytest.mark.parametrize(
    ("logged", "options"), [*zip(LOGGED.values(), [(), ("-n", "1")], strict=True)], ids=["alone", "in a worker"]
)
def test_secret_in_the_log_fails_the_run_and_is_not_printed(tmp_path, logged, options):
    done = run(tmp_path, logged, *options)
    assert done.returncode == 1, done.stdout
    assert "2 passed" in done.stdout
    for what, secret in SECRETS.items():
        told = f"test_it.py::test_that_logs: the logger service wrote a secret ({what})"
        assert told in done.stdout
        assert secret not in done.stdout + done.stderr


def test_log_without_a_secret_passes(tmp_path):
    done = run(tmp_path, "'a pass phrase, urs_in_the' + ' ' * 12")
    assert (done.returncode, "secrets in the log" in done.stdout) == (0, False), done.stdout


@pytest.mark.parametrize("length", [LEAST_CHARACTERS, 13, 40])
def test_secret_is_found_wherever_it_stands(monkeypatch, length):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    secret = token_urlsafe(40)[:length]
    for before in range(3 * BLOCK):
        watch = Watch()
        watch.note(secret, "key")
        watch.record("service", "." * before + secret[:-1])
        assert watch.leaks() == []
        watch.record("service", "." * before + secret + "." * (before % 5))
        assert watch.leaks() == [": the logger service wrote a secret (key)"]
