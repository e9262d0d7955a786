"""Every decision has the same form and stands in the index."""

import re

import pytest

from tests.service import CHECKOUT

FOLDER = CHECKOUT / "docs/decisions"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))


def test_each_decision_has_a_number_of_its_own_and_each_line_of_the_index_its_decision():
    names = [path.name for path in DECISIONS]
    assert len({name[:4] for name in names}) == len(names)
    assert sorted(re.findall(r"\]\((\d{4}-.+?\.md)\) \|", (FOLDER / "README.md").read_text())) == names


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decision_has_a_date_and_its_three_sections(path):
    text = path.read_text()
    title = re.match(rf"# {path.name[:4]}\. (.+)\n\nDate: 20\d\d-\d\d-\d\d", text)
    assert title, "A decision begins with its number, its title and its date."
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"| {path.name[:4]} | [{title[1]}]({path.name}) |" in (FOLDER / "README.md").read_text()
