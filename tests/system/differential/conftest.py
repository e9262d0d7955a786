"""One database of people and rows, and one comparison, for all tests of the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

# There is nothing to compare.
collect_ignore_glob = [] if settings.FAST_PATH else ["*"]


@pytest.fixture(scope="package")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
    from tests.system.differential.world import populated

    with django_db_blocker.unblock(), populated() as made:
        yield made


@pytest.fixture(scope="package")
def compare(world: Any) -> Any:
    """Sends requests on both paths: `compare(Sent(…), …)`."""
    from tests.system.differential.comparison import Comparison

    return Comparison()
