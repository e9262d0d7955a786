"""A service with the demo data, and the languages that the guide shows beside curl."""

from collections.abc import Iterator

import pytest

from tests.docs.conftest import variables
from tests.docs.languages import JavaScript, Language, Python

__all__ = ["variables"]


@pytest.fixture(params=[Python, JavaScript], ids=lambda kind: kind.name)
def language(request: pytest.FixtureRequest) -> Iterator[Language]:
    running = request.param()
    yield running
    running.close()
