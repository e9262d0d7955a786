"""One database of people and rows, and one comparison, for all tests of the folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

# There is nothing to compare.
collect_ignore_glob = [] if settings.FAST_PATH else ["*"]

MIN_COMPARED = 5000


@pytest.fixture(scope="session")
def counts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counter[str]]:
    """How many requests each test compared. All tests together compare at least MIN_COMPARED.

    Each process of pytest-xdist writes its own counts down; the last one to end finds those of all.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "compared"
    folder.mkdir(exist_ok=True)
    counts: Counter[str] = Counter()
    yield counts
    (folder / str(os.getpid())).write_text(json.dumps(counts))
    total: Counter[str] = sum((Counter(json.loads(each.read_text())) for each in folder.iterdir()), Counter())
    comparing = {item.nodeid for item in request.session.items if "compare" in getattr(item, "fixturenames", ())}
    if is_whole_run(request.config) and comparing == total.keys():
        assert total.total() >= MIN_COMPARED


def is_whole_run(config: pytest.Config) -> bool:
    options = (config.getoption(name, None) for name in ("keyword", "markexpr", "deselect", "lf"))
    return all(Path(argument).is_dir() for argument in config.args) and not any(options)


@pytest.fixture(scope="package")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
    from tests.system.differential.world import populated

    with django_db_blocker.unblock(), populated() as made:
        yield made


@pytest.fixture(scope="package")
def comparison(world: Any, counts: Counter[str]) -> Any:
    from tests.system.differential.comparison import Comparison

    return Comparison(counts)


@pytest.fixture
def compare(request: pytest.FixtureRequest, comparison: Any) -> Any:
    """Sends requests on both paths: `compare(Sent(…), …)`."""
    comparison.test = request.node.nodeid
    return comparison
