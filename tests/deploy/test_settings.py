"""Every documented setting is changed by a test, which looks at what becomes of it."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.deploy.test_files import ROOT, read_documented


def find_changes(tree: ast.AST) -> Iterator[str]:
    """The names of variables that code sets: in an environment, in a keyword or a dictionary, or in the settings."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Dict(keys=keys):
                yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Attribute(attr="setenv" | "setattr"), args=[*arguments]):
                yield from (
                    each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)
                )


def find_tests() -> dict[str, set[Path]]:
    """The files of tests that change a variable, by its name."""
    found = defaultdict(set)
    for path in ROOT.glob("tests/**/test_*.py"):
        for name in find_changes(ast.parse(path.read_text())):
            found[name.removesuffix("_FILE")].add(path.relative_to(ROOT))
    return found


def test_every_setting_is_changed_by_a_test():
    tests = find_tests()
    assert [name for name in read_documented() if not tests[name]] == []
