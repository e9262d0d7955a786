"""Every decision has the same form and stands in the index."""

import re

import pytest

from tests.service import CHECKOUT

FOLDER = CHECKOUT / "docs/decisions"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))


def test_decisions_are_numbered_without_gaps():
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decision_has_a_date_and_its_three_sections(path):
    text = path.read_text()
    title = re.match(rf"# {path.name[:4]}\. (.+)\n\nDate: 20\d\d-\d\d-\d\d", text)
    assert title, "A decision begins with its number, its title and its date."
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"| {path.name[:4]} | [{title[1]}]({path.name}) |" in (FOLDER / "README.md").read_text()
