"""What stands in deploy/ and .env.example fits the service, as far as can be told without running it.

The proxies are run: tests/system/test_proxies.py.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from config.settings import REQUIRED, SECRETS, env

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
_ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| (?P<meaning>.+) \| (?P<default>[^|]+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_VARIABLE = re.compile(r"^#? ?([A-Z_]+)=", re.MULTILINE)


def read_documented() -> dict[str, tuple[str, str]]:
    """The meaning and default of each variable in the table of settings."""
    section = (ROOT / "docs/operations.md").read_text().split("## Settings")[1].split("\n## ")[0]
    return {
        name: (row["meaning"], default)
        for row in _ROW.finditer(section)
        for name, default in zip(re.findall(r"`([A-Z_]+)`", row["names"]), row["default"].split(", "), strict=False)
    }


def build_example() -> str:
    """The text of .env.example: the required variables to fill in, and all others with their defaults."""
    lines = ["# The settings of the service in production; docs/operations.md says more of each."]
    for name, (meaning, default) in read_documented().items():
        given = "".join(re.findall(r"^`([^` ]*)`", default)[:1])
        text = _LINK.sub(r"\1", meaning).replace("`", "")
        lines += ["", f"# {text}", f"{name}=" if name in REQUIRED else f"# {name}={given}"]
    return "\n".join(lines) + "\n"


def test_every_setting_is_documented():
    assert set(read_documented()) == set(env.dump())


def test_example_holds_every_setting():
    """To write it anew: .venv/bin/python -m tests.plugins.postgresql .venv/bin/python -m tests.deploy.test_files."""
    assert (ROOT / ".env.example").read_text() == build_example()


def test_image_holds_what_the_service_is_made_of():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    copied = {path for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, re.MULTILINE) for path in line.split()[:-1]}
    apps = {path.parent.name for path in ROOT.glob("*/apps.py")}
    assert apps | {"docs", "manage.py", "requirements-otel.txt"} <= copied
    allowed = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)


def test_image_does_not_run_as_root():
    last = (DEPLOY / "Dockerfile").read_text().split("FROM ")[-1]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "pip install" not in last


def test_compose_gives_secrets_in_files():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["service"]
    given = {name.removesuffix("_FILE") for name in service["environment"]}
    assert set(REQUIRED) <= given <= set(env.dump())
    for name in set(SECRETS) & given:
        path = service["environment"][f"{name}_FILE"]
        assert Path(path).name in service["secrets"]
        assert Path(path).name in compose["secrets"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


def test_compose_fills_in_what_nginx_leaves_open():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    open_names = set(re.findall(r"\$\{([A-Z_]+)\}", (DEPLOY / "nginx.conf").read_text().split("upstream", 1)[1]))
    assert open_names == set(compose["services"]["proxy"]["environment"])


def test_unit_is_one_that_systemd_takes():
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("There is no systemd-analyze on this machine.")
    unit = DEPLOY / "users-service.service"
    checked = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    # The program that it starts is not on this machine.
    told = [line for line in checked.stderr.splitlines() if "is not executable" not in line]
    assert told == []


def test_dockerfile_is_one_that_hadolint_takes():
    program = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run([program, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


if __name__ == "__main__":
    (ROOT / ".env.example").write_text(build_example())
