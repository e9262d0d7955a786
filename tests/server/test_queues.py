"""Who waits in a lane, and who gives way when it is full."""

from types import SimpleNamespace
from typing import Any

from config.server.queues import FairQueue


def fill(*callers: str) -> tuple[FairQueue, list[Any]]:
    queue = FairQueue()
    tasks: list[Any] = [SimpleNamespace(caller=caller, number=number) for number, caller in enumerate(callers)]
    for task in tasks:
        queue.put(task)
    return queue, tasks


def test_callers_are_taken_in_turn():
    queue, _ = fill("a", "a", "a", "b", "c")
    assert [task.caller for task in queue.take(5)] == ["a", "b", "c", "a", "a"]
    assert len(queue) == 0


def test_of_a_caller_with_many_tasks_no_more_are_before_a_new_one_than_it_has_turns():
    queue, _ = fill("a", "a", "a", "b", "c")
    # One of each; two of a, and one of b and c each; all of a once more.
    assert [queue.count_before(caller, lambda other: True) for caller in ("d", "b", "a")] == [3, 4, 5]
    assert [queue.count_before(caller, "a".__ne__) for caller in ("d", "b")] == [2, 2]
    assert [queue.count(caller) for caller in "abd"] == [3, 1, 0]


def test_newest_of_whom_most_wait_gives_way_to_a_caller_with_fewer():
    queue, tasks = fill("a", "b", "b", "b", "a")
    assert queue.take_newest("c") is tasks[3]
    assert len(queue) == 4
    # A caller would have as many as the others: it is the one to be refused.
    assert queue.take_newest("b") is None
    assert queue.take_newest("a") is None
    assert queue.take_newest("c") is tasks[4]
    assert queue.take_newest("c") is tasks[2]
    assert queue.take_newest("c") is None
    assert [task.number for task in queue.take(9)] == [0, 1]


def test_nobody_gives_way_in_an_empty_queue():
    queue, _ = fill()
    assert queue.take_newest("a") is None
