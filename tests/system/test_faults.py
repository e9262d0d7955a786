"""A short run of what `make faults` does at length."""

from tests.faults.trial import run


def test_nothing_is_lost_doubled_or_stuck_when_parts_are_killed(tmp_path):
    outcome = run(10, tmp_path)
    assert outcome.right, "\n".join(outcome.lines())
    assert set(outcome.kills) == {"worker", "postmaster", "backend", "service"}
