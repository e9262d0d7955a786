"""Lets Schemathesis send what the documents describe and what they do not, and judge each answer by all its checks.

`make test-schema FUZZ_SECONDS=60`, or `python -m tests.fuzz 60`: so long for each version, as two people, of whom
neither may see what is the other's alone, and as an administrator. The service and its data are its own.

`envelope`, `fields` and bodies of lines are left out: with them, an answer has another shape than the one that is
described, which generated clients could not read otherwise. tests/api has their tests.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.plugins.described import close
from tests.service import Service, ask, temporary_copy

SCHEMATHESIS = Path(__file__).resolve().parents[1] / "clients/.venv/bin/schemathesis"
HOOKS = Path(__file__).with_name("hooks.py")
PEOPLE = ("first", "second")
PASSWORD = "four plain words here"
SHAPES = {"envelope", "fields"}
# Version 1 takes the default for what is not a number, and describes the numbers that clients should send.
DEFAULTED = {"page", "offset", "limit"}
VARIABLES = {
    # Wrong passwords are what a fuzzer sends.
    "RATE_LIMIT_LOGIN_ACCOUNT": "0",
    "RATE_LIMIT_LOGIN_ADDRESS": "0",
    # Without one, there is no such address.
    "METRICS_TOKEN": "unknown-to-the-fuzzer",
}

CONFIGURATION = """
hooks = {hooks}

[auth.wfc]
path = {auth}
peers = {peers}

# What no schema can say: parameters that exclude each other, a cursor that was given out, a tag of the present state, a
# key that was used before. And Schemathesis sends headers that their patterns do not allow.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "400", "401", "403", "404", "409", "412", "415", "422", "429"]

# Its own but 5xx, and 412: a tag is compared before the body is looked at (RFC 9110, section 13.2.1).
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "415", "422", "428", "429"]
"""


def write_document(service: Service, version: int, folder: Path) -> Path:
    """The document of a version, with closed answers and without what changes their shape."""
    served = ask(service, f"/openapi.json?version={version}").json()
    document = close(served)
    # Requests are open or closed as the document says.
    schemas = served["components"]["schemas"]
    document["components"]["schemas"] |= {name: schemas[name] for name in schemas if name.endswith("Request")}
    shared = {f"#/components/parameters/{name}" for name in SHAPES}
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["parameters"] = [
                parameter
                for parameter in operation.get("parameters", [])
                if parameter.get("name") not in SHAPES and parameter.get("$ref") not in shared
            ]
            operation.get("requestBody", {}).get("content", {}).pop("application/x-ndjson", None)
    for name in DEFAULTED if version == 1 else ():
        document["components"]["parameters"][name]["schema"] = {}
    path = folder / f"version-{version}.json"
    path.write_text(json.dumps(document))
    return path


def log_in(service: Service, email: str, password: str) -> str:
    """A credential that may do all that its user may, and is good for a quarter of an hour."""
    body = {"email": email, "password": password}
    tokens = ask(service, "/api/v2/login", "POST", body).json()["data"]
    return f"Bearer {tokens['access_token']}"


def make_credentials(service: Service, version: int) -> dict[str, str]:
    """The value of `Authorization` of each caller, in the order in which Schemathesis tries them.

    People are made for each version: they may have removed themselves.
    """
    printed = dict(line.split(": ", 1) for line in service.lines)
    administrator = log_in(service, printed["Administrator"], printed["Password"])
    people = {}
    for name in PEOPLE:
        body = {"name": name, "email": f"{name}{version}@example.com", "password": PASSWORD}
        ask(service, "/api/v2/users", "POST", body, Authorization=administrator)
        people[name] = log_in(service, body["email"], PASSWORD)
    return {**people, "administrator": administrator}


def write_configuration(folder: Path, credentials: Mapping[str, str]) -> Path:
    auth, configuration = folder / "auth.json", folder / "schemathesis.toml"
    entries = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": value}]}
        for name, value in credentials.items()
    ]
    auth.write_text(json.dumps({"auth": entries}))
    configuration.write_text(
        CONFIGURATION.format(hooks=json.dumps(str(HOOKS)), auth=json.dumps(str(auth)), peers=json.dumps(PEOPLE))
    )
    return configuration


def run(service: Service, document: Path, configuration: Path, seconds: int) -> bool:
    """Whether all answers of a version were as they are described."""
    command = [SCHEMATHESIS, "--config-file", configuration, "run", document]
    command += [
        "--checks",
        "all",
        "--exclude-checks",
        "object_level_authorization",
        "--max-time",
        str(seconds),
        "--generation-database",
        ":memory:",
        "--no-color",
    ]
    done = subprocess.run([*map(str, command), "--url", service.url], cwd=configuration.parent, check=False)
    return done.returncode == 0


def main(seconds: int) -> int:
    with TemporaryDirectory() as folder, temporary_copy("service") as copy:
        service = Service(copy, **VARIABLES)
        try:
            clean = []
            for version in [each["version"] for each in ask(service, "/api/v2/versions").json()["data"]]:
                configuration = write_configuration(Path(folder), make_credentials(service, version))
                document = write_document(service, version, Path(folder))
                clean.append(run(service, document, configuration, seconds))
        finally:
            service.stop()
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
