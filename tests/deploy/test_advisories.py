"""What `make lint` says of advisories."""

import json

from tests.deploy.advisories import judge

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
