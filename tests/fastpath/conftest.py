"""The tests of the accelerator, where it is installed."""

import pytest
from django.conf import settings
from django.db import connection

collect_ignore_glob = [] if settings.FAST_PATH else ["test_*.py"]


@pytest.fixture
def sizes(transactional_db, monkeypatch):
    """How many batches of statements came at once, of each time."""
    found = []
    run_batches = connection.run_batches
    monkeypatch.setattr(connection, "run_batches", lambda batches: found.append(len(batches)) or run_batches(batches))
    return found
