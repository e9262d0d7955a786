"""What `make sbom` writes."""

import json
import re
import subprocess
import sys

from tests.service import CHECKOUT


def test_bill_of_materials_names_each_package_of_the_lock(tmp_path):
    """By the command of `make sbom`, which validates what it writes."""
    (command,) = re.findall(r"cyclonedx_py .*?(?=--output-file)", (CHECKOUT / "Makefile").read_text(), re.DOTALL)
    file = tmp_path / "sbom.json"
    arguments = [*command.replace("\\\n", " ").split(), "--output-file", str(file)]
    subprocess.run([sys.executable, "-m", *arguments], cwd=CHECKOUT, check=True)
    bill = json.loads(file.read_text())
    found = {
        f"{part['name']}=={part['version']}": part["externalReferences"][0]["hashes"] for part in bill["components"]
    }
    lock = (CHECKOUT / "requirements.txt").read_text()
    assert set(found) == set(re.findall(r"^([\w.-]+==[\w.]+)", lock, re.MULTILINE))
    assert all(f"sha256:{digest['content']}" in lock for hashes in found.values() for digest in hashes)
    assert bill["metadata"]["component"]["name"] == "users-resource-service"
