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

from config import VERSION
from config.settings import REQUIRED, SECRETS, env
from tests.service import CHECKOUT

DEPLOY = CHECKOUT / "deploy"
UNITS = DEPLOY / "systemd"
_ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| (?P<meaning>.+) \| (?P<default>[^|]+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def read_documented() -> dict[str, tuple[str, str]]:
    """The meaning and default of each variable in the table of settings."""
    text = (CHECKOUT / "docs/settings.md").read_text()
    return {
        name: (row["meaning"], default)
        for row in _ROW.finditer(text)
        for name, default in zip(re.findall(r"`([A-Z_]+)`", row["names"]), row["default"].split(", "), strict=False)
    }


def build_example() -> str:
    """The text of .env.example: the required variables to fill in, and all others with their defaults."""
    lines = ["# Settings for production. docs/settings.md has the details."]
    for name, (meaning, default) in read_documented().items():
        given = "".join(re.findall(r"^`([^` ]*)`", default)[:1])
        text = _LINK.sub(r"\1", meaning).replace("`", "")
        lines += ["", f"# {text}", f"{name}=" if name in REQUIRED else f"# {name}={given}"]
    return "\n".join(lines) + "\n"


def test_every_setting_is_documented():
    assert set(read_documented()) == set(env.dump())


def test_each_secret_that_a_file_may_hold_is_documented():
    text = (CHECKOUT / "docs/settings.md").read_text().partition("## Secrets in files")[2].partition(")")[0]
    named = set(re.findall(r"`([A-Z_]+)`", text))
    keys = {"SECRET_KEY", "JWT_SIGNING_KEY"}
    assert named - {"_FALLBACKS"} | {f"{key}_FALLBACKS" for key in keys} == set(SECRETS)


def test_example_holds_every_setting():
    """To write it anew: .venv/bin/python -m tests.plugins.postgresql .venv/bin/python -m tests.deploy.test_files."""
    example = build_example()
    assert (CHECKOUT / ".env.example").read_text() == example
    # The text of a link alone says nothing.
    assert re.findall(r"\(\w+\)", example) == []


def test_version_is_that_of_the_last_release_or_of_the_next_one():
    released = re.findall(r"^## \[(\d[\d.]*)\]", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert VERSION in released[:1] or VERSION.endswith(".dev0")
    tags = subprocess.run(
        ["git", "tag", "--list", "v*"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    assert {tag.removeprefix("v") for tag in tags.split()} <= set(released)


def test_image_holds_what_the_service_is_made_of():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    copied = {path for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, re.MULTILINE) for path in line.split()[:-1]}
    apps = {path.parent.name for path in CHECKOUT.glob("*/models.py")}
    assert apps | {"docs", "manage.py", "requirements-otel.txt"} <= copied
    allowed = set(re.findall(r"^!(.+)$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied == allowed
    assert all((CHECKOUT / path).exists() for path in copied)


def test_image_does_not_run_as_root():
    last = (DEPLOY / "Dockerfile").read_text().split("FROM ")[-1]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "pip install" not in last


def test_compose_needs_what_the_guide_makes(tmp_path):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["service"]
    (block,) = re.findall(
        r"^(install [^\n]* deploy/environment <<END\n.*?^END\nsed [^\n]* > deploy/proxy.conf)$",
        (CHECKOUT / "docs/deploy.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    (tmp_path / "deploy").mkdir()
    shutil.copy(DEPLOY / "nginx.conf", tmp_path / "deploy")
    values = "DOMAIN=api.example.com\nEMAIL_URL=smtp://localhost\nADMINISTRATOR_ADDRESS=198.51.100.1\n"
    script = f"{values}cd '{tmp_path}'\n{block}".replace("git ", f"git -C '{CHECKOUT}' ")
    subprocess.run(["bash", "-ec", script], check=True)
    made = dict(line.split("=", 1) for line in (tmp_path / "deploy/environment").read_text().splitlines())
    needed = re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text())
    assert set(needed) <= {name for name, value in made.items() if value}
    assert (
        {*REQUIRED, "METRICS_TOKEN"} <= {*made, *service["environment"]} <= {*env.dump(), "POSTGRES_PASSWORD", "COMMIT"}
    )
    assert service["env_file"] == compose["services"]["deliver"]["env_file"] == ["environment"]
    assert (tmp_path / "deploy/environment").stat().st_mode & 0o777 == 0o600
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    proxy = compose["services"]["proxy"]
    assert proxy["volumes"][0].partition(":")[0] == "./proxy.conf"
    assert proxy["ports"] == ["80:80", "443:443"]
    assert "ports" not in service
    site = (tmp_path / "deploy/proxy.conf").read_text()
    assert site.count("server service:8000 ") == 2
    assert "127.0.0.1:8000" not in site
    assert site.count("allow 198.51.100.1;") == 1
    ignored = (CHECKOUT / ".gitignore").read_text().splitlines()
    assert {"deploy/environment", "deploy/proxy.conf"} <= set(ignored)


@pytest.mark.parametrize("unit", sorted(UNITS.iterdir()), ids=lambda unit: unit.name)
def test_unit_is_one_that_systemd_takes(unit):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("There is no systemd-analyze on this machine.")
    checked = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    # The programs that it starts are not on this machine.
    told = [line for line in checked.stderr.splitlines() if "is not executable" not in line]
    assert told == []


def test_unit_may_do_little():
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("There is no systemd-analyze on this machine.")
    command = [program, "security", "--offline=true", "--threshold=20", UNITS / "users-service.service"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_dockerfile_is_one_that_hadolint_takes():
    program = Path(sys.executable).with_name("hadolint")
    checked = subprocess.run([program, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


if __name__ == "__main__":
    (CHECKOUT / ".env.example").write_text(build_example())
