"""What `make lint` says of advisories, and the bill of materials."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.deploy.advisories import judge

ROOT = Path(__file__).resolve().parents[2]
FAULT = {"id": "PYSEC-2030-1", "fix_versions": ["1.2", "2.0"], "description": "…", "aliases": []}
GOOD = {"name": "good", "version": "1.0", "vulns": []}
FAULTY = {"name": "faulty", "version": "1.1", "vulns": [FAULT]}
UNKNOWN = {"name": "own", "skip_reason": "Dependency not found on PyPI and could not be audited: own (1.0)"}


def test_faulty_package_is_named_and_unknown_ones_are_no_fault():
    for packages, lines, has_faults in [
        ([GOOD], [], False),
        ([GOOD, FAULTY], ["faulty 1.1: PYSEC-2030-1, mended in 1.2, 2.0"], True),
        (
            [{**FAULTY, "vulns": [{**FAULT, "fix_versions": []}]}],
            ["faulty 1.1: PYSEC-2030-1, mended in no version yet"],
            True,
        ),
        (
            [GOOD, UNKNOWN],
            ["PyPI, as it is reached from here, does not know own: not looked up among its advisories."],
            False,
        ),
        (
            [UNKNOWN],
            ["PyPI, as it is reached from here, does not know any package: not looked up among its advisories."],
            False,
        ),
    ]:
        assert judge(json.dumps({"dependencies": packages, "fixes": []}), "") == (lines, has_faults)


def test_silent_pypi_is_told_in_one_line_and_is_no_fault():
    said = "Traceback …\nConnectionError: no route\n"
    expected = "The packages were not looked up among the advisories of PyPI: ConnectionError: no route"
    assert judge("", said) == ([expected], False)


def test_bill_of_materials_names_each_package_of_the_lock(tmp_path):
    """By the command of `make sbom`, which validates what it writes."""
    (command,) = re.findall(r"cyclonedx_py .*?(?=--output-file)", (ROOT / "Makefile").read_text(), re.DOTALL)
    file = tmp_path / "sbom.json"
    arguments = [*command.replace("\\\n", " ").split(), "--output-file", str(file)]
    subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=True)
    bill = json.loads(file.read_text())
    found = {
        f"{part['name']}=={part['version']}": part["externalReferences"][0]["hashes"] for part in bill["components"]
    }
    lock = (ROOT / "requirements.txt").read_text()
    assert set(found) == set(re.findall(r"^([\w.-]+==[\w.]+)", lock, re.MULTILINE))
    assert all(f"sha256:{digest['content']}" in lock for hashes in found.values() for digest in hashes)
    assert bill["metadata"]["component"]["name"] == "users-resource-service"
