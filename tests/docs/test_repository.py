"""The files that readers and contributors start from agree with each other."""

import re
import runpy
from pathlib import Path

import pytest
from django.utils.text import slugify

from tests.service import CHECKOUT

PAGES = [*sorted(CHECKOUT.glob("*.md")), *sorted((CHECKOUT / "docs").rglob("*.md"))]
# Within the checkout: an address of the service (`/docs/…`) is followed by the tests of its pages.
_LINK = re.compile(r"\]\((?!https?:|/)(?P<file>[^)#]*)(?:#(?P<section>[^)]+))?\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def identifier(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def anchors(path: Path) -> set[str]:
    return {slugify(title) for title in re.findall(r"^#+ (.+)$", _CODE.sub("", path.read_text()), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=identifier)
def test_every_link_between_files_leads_somewhere(page):
    for link in _LINK.finditer(_CODE.sub("", page.read_text())):
        target = (page.parent / link["file"]).resolve() if link["file"] else page
        assert target.exists(), link[0]
        if link["section"]:
            assert link["section"] in anchors(target), link[0]


def test_make_lists_few_targets_and_each_page_names_those_there_are():
    targets = dict(re.findall(r"^([a-z-]+):.*?(##|#:) ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    listed = [name for name, mark in targets.items() if mark == "##"]
    assert listed[:7] == ["run", "test", "format", "lint", "docs", "bench", "lock"]
    assert len(listed) <= 14
    named = {
        name for page in PAGES for name in re.findall(r"(?:^|`)make ([a-z][a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert {"run", "test", "test-system"} <= named <= targets.keys()


def test_hooks_run_the_commands_of_make_lint():
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    commands = [line.removeprefix("\t@").replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    hooks = re.findall(r"^ +entry: (.+)$", (CHECKOUT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    assert hooks == commands


@pytest.mark.parametrize("name", ["architecture", "scale"])
def test_picture_is_what_its_source_gives(name):
    render = runpy.run_path(str(CHECKOUT / "docs/architecture.py"))["render"]
    source = (CHECKOUT / f"docs/{name}.txt").read_text()
    assert (CHECKOUT / f"docs/{name}.svg").read_text() == render(source)
