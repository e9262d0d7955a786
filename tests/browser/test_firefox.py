"""The main ways, in Firefox too."""

import os
import shutil
import subprocess

import pytest

from tests.browser.conftest import HERE
from tests.service import Service

FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")


@pytest.mark.skipif(not FIREFOX, reason="There is no Firefox: install one, or say where it is: FIREFOX=/path")
def test_main_ways_in_firefox(service: Service, administrator: tuple[str, str], api_key: str) -> None:
    email, password = administrator
    told = {"ORIGIN": service.url, "EMAIL": email, "PASSWORD": password, "KEY": api_key, "FIREFOX": str(FIREFOX)}
    run = subprocess.run(
        ["node", HERE / "firefox.mjs"],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, f"After the ways {run.stdout.splitlines()}:\n{run.stderr}"
