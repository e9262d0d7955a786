"""The worked example of docs/layout.md, built and called as it stands there."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.service import CHECKOUT

_FILE = re.compile(r"^`(notes/\w+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SETTINGS = """
from config.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "notes"]
ROOT_URLCONF = "example_urls"
"""
URLS = """
from config.urls import *
from notes.urls import router

urlpatterns = [path("api/v<version:version>/", include(router.urls)), *urlpatterns]
"""
CALLS = """
import json

import django

django.setup()
from django.core.management import call_command
from django.test import Client

call_command("makemigrations", "notes", verbosity=0)
call_command("migrate", verbosity=0)

from accounts.services import create_api_key
from users import services

owner = services.create(name="N", email="n@example.com", password=None)
other = services.create(name="O", email="o@example.com", password=None)
key, strange = (create_api_key(user, name="k")[1] for user in (owner, other))


def call(method, path, body=None, key=key):
    answer = Client().generic(method, path, json.dumps(body), "application/json", headers={"X-API-Key": key})
    return answer.status_code, json.loads(answer.content or "null")


made = call("POST", "/api/v1/notes", {"text": "Buy tea", "pinned": 1})
listed = call("GET", "/api/v1/notes?sort=text&cursor=")
print(json.dumps({
    "made": made,
    "listed": listed,
    "wrong": call("POST", "/api/v1/notes", {"text": "", "pinned": "1"}),
    "strange": call("GET", "/api/v1/notes/1", key=strange),
    "replaced": call("PUT", "/api/v1/notes/1", {"text": "Buy coffee"}),
    "documented": sorted(call("GET", "/openapi.json")[1]["paths"]["/api/v1/notes/{id}"]),
    "removed": call("DELETE", "/api/v1/notes/1"),
}))
"""


@pytest.fixture
def example(tmp_path):
    files = dict(_FILE.findall((CHECKOUT / "docs/layout.md").read_text()))
    (tmp_path / "notes/migrations").mkdir(parents=True)
    for name in ("notes/__init__.py", "notes/migrations/__init__.py"):
        (tmp_path / name).touch()
    for name, text in (files | {"example_settings.py": SETTINGS, "example_urls.py": URLS, "calls.py": CALLS}).items():
        (tmp_path / name).write_text(text)
    return tmp_path, files


def test_the_worked_example_is_a_resource_in_under_100_lines(example, empty_database):
    folder, files = example
    assert sum(len(text.splitlines()) for text in files.values()) < 100
    environment = os.environ | {
        "DATABASE_URL": empty_database,
        "DJANGO_SETTINGS_MODULE": "example_settings",
        "PYTHONPATH": os.pathsep.join([str(folder), str(CHECKOUT)]),
    }
    done = subprocess.run(
        [sys.executable, "calls.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["made"][0] == 201
    assert said["made"][1]["data"]["_links"] == {
        "self": {"href": "/api/v1/notes/1"},
        "delete": {"href": "/api/v1/notes/1", "method": "DELETE"},
    }
    assert [row["text"] for row in said["listed"][1]["data"]] == ["Buy tea"]
    assert {detail["field"] for detail in said["wrong"][1]["error"]["details"]} == {"text", "pinned"}
    assert said["strange"][0] == 404
    replaced = said["replaced"][1]["data"]
    assert (replaced["text"], replaced["pinned"]) == ("Buy coffee", 0)
    assert said["documented"] == ["delete", "get", "patch", "put"]
    assert said["removed"][0] == 204
