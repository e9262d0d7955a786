"""Jobs that one thread does side by side, so that what they ask meanwhile is asked together.

To wait for the database costs a process more than to think: it is put to sleep and woken, and finds the processor's
caches filled by others. Of jobs that wait together, the process sleeps once for all.

A job goes on undisturbed up to where it asks. Between two questions it has the thread for itself, and so a transaction
too, in which nothing is asked this way, and whatever is `undisturbed`.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent, greenlet

logger = logging.getLogger(__name__)


class _Job(greenlet):
    """A job that can be left in the middle, and gone on with. What it puts into context variables is its own."""

    may_ask = True


def run(jobs: Sequence[Callable[[], None]], answer: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
    """Does jobs, each of them up to where it asks, and again from there on when all have done so.

    A job that raises ends, and no other one with it.

    Args:
        answer: gets the questions of several jobs, and gives to each its answer, or the Exception to raise where it was
            asked; what it raises itself is raised in all of them.
    """
    if len(jobs) == 1:
        _guarded(jobs[0])
        return
    asking: list[tuple[_Job, Any]] = []
    for job in jobs:
        _go_on(asking, _Job(_guarded), job)
    while asking:
        asked, asking = asking, []
        try:
            answers = answer([question for _, question in asked])
        except Exception as problem:  # noqa: BLE001 - whose it is, each job says where it asked
            answers = [problem] * len(asked)
        for (left, _), answered in zip(asked, answers, strict=True):
            _go_on(asking, left, answered)


def may_ask() -> bool:
    """Whether the caller is a job beside others, and so may `ask`."""
    job = getcurrent()
    return type(job) is _Job and job.may_ask


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keeps a job from asking: for what looks at the database and then acts on it, one job after the other."""
    job: Any = getcurrent()
    if not may_ask():
        yield
        return
    job.may_ask = False
    try:
        yield
    finally:
        job.may_ask = True


def ask(question: Any) -> Any:
    """The answer to a question, for which other jobs are gone on with.

    Raises:
        Exception: that was given for an answer.
    """
    answer = getcurrent().parent.switch(question)  # type: ignore[union-attr]  # a job has one
    if isinstance(answer, Exception):
        # Of several jobs that get the same one, none shall find the others' way in it.
        raise answer.with_traceback(None)
    return answer


def _go_on(asking: list[tuple[_Job, Any]], job: _Job, given: Any) -> None:
    question = job.switch(given)
    if not job.dead:
        asking.append((job, question))


def _guarded(job: Callable[[], None]) -> None:
    try:
        job()
    except BaseException:
        logger.critical("A job failed", exc_info=True)
