"""The run of the tests fails when an answer is not one that the reference describes."""

import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests.system.conftest import run_tests

TESTS = """
import pytest
from django.test import Client

class Spoiled:
    # Between the service and the test, as a mistake of the service would be.
    spoil = ""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        names = {"request": request, "response": self.get_response(request), "Client": Client}
        if "spoil" in request.GET:
            exec(self.spoil, names)
        return names["response"]

@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_that_asks(spoil):
    from django.conf import settings
    if "test_it.Spoiled" not in settings.MIDDLEWARE:
        settings.MIDDLEWARE = ["test_it.Spoiled", *settings.MIDDLEWARE]
    assert Client().get("/health/live").status_code == 200
    assert Client().get("/health/nowhere").status_code == 404
    Spoiled.spoil = spoil
    Client().get("/health/live?spoil")

def test_that_does_nothing():
    pass
"""
FAULTS = {
    "a status": ("response.status_code = 418", "GET /health/live 418: the status is not described"),
    "a body": (
        """response.content = b'{"success": true, "data": {"status": "fine"}}'""",
        'GET /health/live 200: the body is not as described: data/status: "fine" is not one of "ok"',
    ),
    "a header too few": ("del response['ETag']", "GET /health/live 200: the header ETag is missing"),
    "an operation": (
        """
            from django.urls import path
            from config import urls
            from config.site import health as views
            urls.urlpatterns.append(path("api/alive", views.LiveView.as_view()))
            request.path_info, response['API-Version'] = '/api/alive', '1'""",
        "GET /api/v1/alive 200: the operation is not described",
    ),
    "a code": (
        """
            response = Client().get("/health/live", headers={"Accept": "image/png"})
            response.content = response.content.replace(b"NOT_ACCEPTABLE", b"FORBIDDEN")""",
        "GET /health/live 406: the code FORBIDDEN is not described",
    ),
}


def run(folder: Path, spoils: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    """Runs tests each of which gets a spoiled answer, and one more."""
    return run_tests("tests.plugins.described", folder, f"SPOILS = {spoils!r}\n{TESTS}", *options)


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory) -> "subprocess.CompletedProcess[str]":
    """A run with all faults, which are told apart by their tests."""
    return run(tmp_path_factory.mktemp("spoiled"), {name: dedent(spoil) for name, (spoil, _) in FAULTS.items()})


@pytest.mark.parametrize("name", FAULTS)
def test_answer_that_is_not_described_fails_the_run_and_is_named(spoiled, name):
    assert spoiled.returncode == 1, spoiled.stdout + spoiled.stderr
    assert f"{len(FAULTS) + 1} passed" in spoiled.stdout
    lines = [line for line in spoiled.stdout.splitlines() if f"test_it.py::test_that_asks[{name}])" in line]
    assert any(line.startswith(FAULTS[name][1]) for line in lines), spoiled.stdout
