"""Short runs of what `make faults` and `make faults-mail` do at length."""

from tests.faults import mail
from tests.faults.trial import run


def test_nothing_is_lost_doubled_or_stuck_when_parts_are_killed(tmp_path):
    outcome = run(10, tmp_path)
    assert outcome.right, "\n".join(outcome.lines())
    assert set(outcome.kills) == {"worker", "postmaster", "backend", "service", "deliverer", "receiver", "follower"}


def test_each_request_has_its_message_and_each_message_works_once_when_parts_are_killed(tmp_path):
    outcome = mail.run(12, tmp_path)
    assert outcome.passes, "\n".join(outcome.lines())
