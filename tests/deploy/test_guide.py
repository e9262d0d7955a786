"""What docs/deploy.md tells an operator to do, as far as `make test` can: `make test-deploy` runs all of it."""

import re

import pytest

from tests.deploy.test_files import UNITS
from tests.service import CHECKOUT

GUIDE = (CHECKOUT / "docs/deploy.md").read_text()
(SETTINGS,) = re.findall(
    r"^(install [^\n]*/etc/users-service/environment <<END\n.*?^END\n)", GUIDE, re.MULTILINE | re.DOTALL
)


def test_guide_takes_ten_commands_of_one_step_each() -> None:
    way = GUIDE.partition("\n## ")[0].partition("REPOSITORY=")[2].partition("```\n")[2]
    blocks = "".join(re.findall(r"^```\n(.*?)^```", way, re.MULTILINE | re.DOTALL))
    lines = re.sub(r" <<END\n.*?^END$", "", blocks, flags=re.MULTILINE | re.DOTALL).splitlines()
    assert len(lines) == 10
    assert not re.search(r"&&|; |\|", "".join(lines))


@pytest.mark.parametrize("unit", ["users-service.service", "users-service-purge.service"])
def test_unit_uses_what_the_guide_has_made(unit: str) -> None:
    account = re.search(r"useradd .* (\S+)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    clone = re.search(r"^git clone \S+ (\S+)$", GUIDE, re.MULTILINE)
    assert account
    assert clone
    found = dict(line.split("=", 1) for line in (UNITS / unit).read_text().splitlines() if re.match(r"[A-Z]\w+=", line))
    assert found["User"] == found["Group"] == account[1]
    assert found["WorkingDirectory"] == clone[1]
    assert f" {found['EnvironmentFile']} <<END" in SETTINGS
    assert found["ExecStart"].startswith(f"{clone[1]}/.venv/bin/python manage.py ")
