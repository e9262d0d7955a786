"""Looks the locked packages up among the advisories of PyPI: `make lint` fails for one with a known fault.

Where PyPI cannot be asked, or does not know a package, a line says so, and nothing fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS_FOR_AN_ANSWER = 10
SECONDS_FOR_ALL = 60


def main() -> None:
    lines, has_faults = judge(*_audit())
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit(has_faults)


def _audit() -> tuple[str, str]:
    """The report of pip-audit, empty where it made none, and what it said beside it."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", "requirements-otel.txt", "--require-hashes"]
    # Of what may be installed, the most. The lock is complete: nothing is to be resolved.
    command += ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command += ["--timeout", str(SECONDS_FOR_AN_ANSWER)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS_FOR_ALL)
    except subprocess.TimeoutExpired:
        return "", f"no answer within {SECONDS_FOR_ALL} seconds"
    return done.stdout, done.stderr


def judge(report: str, said: str) -> tuple[Sequence[str], bool]:
    """What a report says, in lines, and whether it names a fault.

    Args:
        report: pip-audit's, in JSON; empty where it could not ask.
        said: what pip-audit wrote to its standard error.
    """
    if not report:
        reason = (said.strip().splitlines() or ["pip-audit gave no reason"])[-1]
        return [f"The packages were not looked up among the advisories of PyPI: {reason}"], False
    packages: Sequence[Mapping[str, Any]] = json.loads(report)["dependencies"]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    lines = [
        f"{package['name']} {package['version']}: {advisory['id']}, mended in "
        f"{', '.join(advisory['fix_versions']) or 'no version yet'}"
        for package in packages
        for advisory in package.get("vulns", ())
    ]
    has_faults = bool(lines)
    if unknown:
        names = "any package" if len(unknown) == len(packages) else ", ".join(unknown)
        lines.append(f"PyPI, as it is reached from here, does not know {names}: not looked up among its advisories.")
    return lines, has_faults


if __name__ == "__main__":
    main()
