"""The worked example of docs/versions.md: its changes are made to a copy of the service, which is then called."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.service import CHECKOUT

_FILE = re.compile(r"^`([\w/]+\.py)`\n\n((?:```diff\n.*?^```\n+)+)", re.MULTILINE | re.DOTALL)
_DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CALLS = """
import json

import django

django.setup()
from django.core.management import call_command
from django.test import Client

call_command("migrate", verbosity=0)

from accounts.services import create_api_key
from users import services

key = create_api_key(services.create(name="N", email="n@example.com", password=None), name="k")[1]


def call(method, path, body=None):
    answer = Client().generic(method, path, json.dumps(body), "application/json", headers={"X-API-Key": key})
    return {"status": answer.status_code, "headers": dict(answer.headers), "body": json.loads(answer.content)}


print(json.dumps({
    "made": call("POST", "/api/v3/orders", {"item": "Tea", "qty": 2}),
    "second": call("GET", "/api/v2/orders"),
    "versions": call("GET", "/versions"),
    "page": Client().get("/docs/versions").text,
    "documents": [call("GET", f"/openapi.json?version={version}") for version in (2, 3)],
}))
"""


def edited(folder: Path) -> None:
    for name, diffs in _FILE.findall((CHECKOUT / "docs/versions.md").read_text()):
        for diff in _DIFF.findall(diffs):
            lines = diff.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            text = (folder / name).read_text()
            assert before in text, name
            (folder / name).write_text(text.replace(before, after))


def test_the_worked_example_is_a_third_version(tmp_path, empty_database):
    for name in ("config", "users", "orders", "posts", "payments", "accounts", "docs"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    edited(tmp_path)
    (tmp_path / "calls.py").write_text(CALLS)
    environment = os.environ | {"DATABASE_URL": empty_database, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "calls.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["made"]["body"]["data"]["qty"] == "2"
    assert said["made"]["headers"]["API-Version"] == "3"
    assert "Deprecation" not in said["made"]["headers"]
    assert said["second"]["body"]["data"][0]["qty"] == 2
    assert '</api/v3/orders>; rel="successor-version"' in said["second"]["headers"]["Link"]
    assert "The <code>qty</code> of an order is answered as a string of digits." in said["page"]
    shown = [one["body"]["components"]["schemas"]["Order"]["properties"]["qty"] for one in said["documents"]]
    assert [qty["type"] for qty in shown] == ["integer", "string"]
    assert [one["status"] for one in said["versions"]["body"]["data"]] == ["deprecated", "deprecated", "current"]
    assert said["versions"]["body"]["data"][2]["changes"] == [
        "The `qty` of an order is answered as a string of digits."
    ]
