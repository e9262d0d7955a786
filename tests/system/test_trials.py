"""Short runs of what `make soak` and `make test-load` do at length, so that they ask for what there is.

How fast something must be is left to the trials themselves, which run on an idle machine.
"""

from threading import Event

import pytest

from tests.load import cases, world
from tests.soak import trial

USERS = 2000
CASES = ("bodies", "logins", "export", "long_pages", "row_locks")


def test_nothing_is_lost_or_unexpected_in_a_short_soak(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "USERS", USERS)
    outcome = trial.run(0.4, tmp_path, Event())
    text = "\n".join(outcome.lines())
    assert not any(outcome.report.faults.values()), text
    assert not outcome.unexpected, text
    assert outcome.faults, text


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "USERS", USERS)
        with world.running(tmp_path_factory.mktemp("load") / "log", CASES) as running:
            yield running.target


@pytest.mark.parametrize("name", CASES)
def test_load_is_answered_as_expected(target, monkeypatch, name):
    monkeypatch.setattr(cases, "MIN_EXPORTED_ROWS", USERS)
    found = cases.run(name, target)
    assert found.statuses
    # What took too long is told with a sign.
    assert not [text for text in found.broken if " > " not in text], found.broken
