"""What Python makes of the documents of a running service (`make test-clients`): a validator, and a generated client.

Run by the Python of an environment of its own, which has openapi-spec-validator and openapi-python-client;
reference.test.mjs fetched the documents.
"""

import importlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ORIGIN = os.environ.get("ORIGIN", "http://127.0.0.1:8000")
GENERATED = HERE / "generated" / "python_client"


def manage(*arguments: str, given: str = "") -> str:
    python = os.environ.get("PYTHON", ".venv/bin/python")
    command = [python, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=True).stdout.strip()


def validate() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator, validate

    for version in (1, 2):
        document = json.loads((HERE / "generated" / f"openapi-v{version}.json").read_text())
        validate(document, cls=OpenAPIV31SpecValidator)
        del document["info"]["version"]
        found = [error.message.partition("\n")[0] for error in OpenAPIV31SpecValidator(document).iter_errors()]
        assert found == ['"version" is a required property'], found


def generate() -> None:
    # Its warnings would be of something in the document that it leaves out.
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--overwrite"]
    command += ["--meta", "none", "--config", "openapi-python-client.yaml"]
    command += ["--path", "generated/openapi-v2.json", "--output-path", str(GENERATED)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def create_administrator_key() -> str:
    email = f"generated-{secrets.token_hex(6)}@example.com"
    manage("create_user", email, "--name", "Generated", "--role", "admin", given=f"{secrets.token_urlsafe(12)}\n")
    return manage("create_api_key", email)


def operation(tag: str, name: str) -> Any:
    return importlib.import_module(f"python_client.api.{tag}.{name}").sync_detailed


def call() -> None:
    """Creates, lists, pages, updates with If-Match, and meets an error."""
    from python_client import AuthenticatedClient, models

    key = create_administrator_key()
    client = AuthenticatedClient(base_url=ORIGIN, token=key, prefix="", auth_header_name="X-API-Key")

    made = []
    for name in ("first", "second", "third"):
        body = models.UserRequest(name=name, email=f"{name}-{secrets.token_hex(6)}@example.net")
        created = operation("users", "users_create")(client=client, body=body)
        assert created.status_code == 201, created
        assert isinstance(created.parsed, models.UserAnswer)
        assert isinstance(created.parsed.data, models.SingleUser)
        assert created.parsed.data.role is models.Role.USER
        assert created.headers["Location"] == created.parsed.data.field_links.self_.href
        made.append(created.parsed.data)

    listed = operation("users", "users_list")(client=client, email=made[0].email, page=1)
    assert isinstance(listed.parsed.meta, models.PageMeta)
    assert (listed.parsed.meta.total, [user.id for user in listed.parsed.data]) == (1, [made[0].id])

    walked, cursor = [], ""
    while cursor is not None and len(walked) < 5:
        page = operation("users", "users_list")(
            client=client, cursor=cursor, limit=2, order=models.UsersListOrder.DESC
        ).parsed
        assert isinstance(page.meta, models.CursorMeta)
        walked += [user.id for user in page.data]
        cursor = page.meta.next_cursor
    assert {user.id for user in made} <= set(walked)

    read = operation("users", "users_retrieve")(made[0].id, client=client)
    change = {"client": client, "if_match": read.headers["ETag"]}
    changed = operation("users", "users_partial_update")(
        made[0].id, **change, body=models.PatchedUserRequest(name="Grace")
    )
    assert changed.parsed.data.name == "Grace"
    stale = operation("users", "users_partial_update")(made[0].id, **change, body=models.PatchedUserRequest(name="Lin"))
    assert stale.status_code == 412
    assert isinstance(stale.parsed, models.Error)
    assert stale.parsed.error.code is models.ErrorCode.PRECONDITION_FAILED
    assert [detail.field for detail in stale.parsed.error.details] == ["If-Match"]

    assert isinstance(read.parsed, models.UserReadAnswer)
    assert isinstance(read.parsed.data, models.SingleUser)
    assert {type(user) for user in listed.parsed.data} == {models.User}

    for user in made:
        assert operation("users", "users_destroy")(user.id, client=client).status_code == 204


if __name__ == "__main__":
    validate()
    generate()
    sys.path.insert(0, str(GENERATED.parent))
    call()
    sys.stdout.write("ok: the validator and the generated Python client\n")
