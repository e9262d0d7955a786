"""The judge of `make test-replicas` finds each kind of stale answer, and takes every right one."""

import pytest

from tests.replicas.judge import Fact, Judge

WRITER, READER = 1, 2
LESS, NEVER, LATE = "less than seen or written", "never written", "too late"


@pytest.fixture
def judge():
    return Judge(max_lag=1.0)


@pytest.fixture
def fact():
    return Fact("name")


def write(fact, now=0.0):
    """A write by the writer, from its beginning to its answer."""
    value = fact.attempt()
    fact.acknowledge(value, now)
    fact.raise_floor(WRITER, value, "PATCH")


def found(judge):
    return [kind for kind, violations in judge.violations.items() for _ in violations]


def test_own_write_is_to_be_shown_at_once(judge, fact):
    write(fact)
    judge.end(judge.begin(WRITER, "GET", [fact], 0.0), [1])
    assert found(judge) == []
    judge.end(judge.begin(WRITER, "GET", [fact], 0.0), [0])
    assert found(judge) == [LESS]


def test_a_request_that_was_sent_before_the_answer_to_the_write_may_show_either(judge, fact):
    asked = [judge.begin(WRITER, "GET", [fact], 0.0) for _ in range(2)]
    write(fact)
    for request, value in zip(asked, (1, 0), strict=True):
        judge.end(request, [value])
    assert found(judge) == []


def test_what_was_seen_is_to_be_shown_again_to_the_same_reader_alone(judge, fact):
    write(fact)
    judge.end(judge.begin(READER, "GET", [fact], 0.5), [1])
    judge.end(judge.begin(READER + 1, "GET", [fact], 0.5), [0])
    assert found(judge) == []
    judge.end(judge.begin(READER, "GET", [fact], 0.5), [0])
    assert found(judge) == [LESS]


def test_what_others_have_written_is_to_be_shown_in_time(judge, fact):
    write(fact, 1.0)
    write(fact, 1.5)
    judge.end(judge.begin(READER, "GET", [fact], 2.0), [0])
    judge.end(judge.begin(READER, "GET", [fact], 2.4), [1])
    assert found(judge) == []
    assert judge.worst_lag == 1.0
    judge.end(judge.begin(READER, "GET", [fact], 2.6), [1])
    assert found(judge) == [LATE]


def test_nothing_is_shown_before_anybody_writes_it(judge, fact):
    fact.attempt()
    judge.end(judge.begin(READER, "GET", [fact], 0.0), [1])
    assert found(judge) == []
    judge.end(judge.begin(READER, "GET", [fact], 0.0), [2])
    assert found(judge) == [NEVER]


def test_each_fact_of_an_answer_is_judged(judge):
    facts = [Fact("orders", 3), Fact("newest order", 3)]
    judge.end(judge.begin(READER, "GET", facts, 0.0), [3, 2])
    assert found(judge) == [LESS]
    assert judge.compared == 2
