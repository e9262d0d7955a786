"""Runs the requests of one thread side by side, so that the queries that they submit are sent in one batch.

Replaces: one request after the other, each of which waits for its own queries. Buys: a process that waits for the
database sleeps, and finds the processor's caches filled by others when it wakes up; tasks that wait together sleep
once.

A task runs until it submits a query. Between two queries it has the thread for itself. A transaction submits nothing:
it is never interleaved with another task.
"""

import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

from greenlet import getcurrent, greenlet

logger = logging.getLogger(__name__)

Task = Callable[[], None]


class _TaskGreenlet(greenlet):
    """A task that can be left in the middle and resumed. Its context variables are its own."""


def run(tasks: Sequence[Task], execute: Callable[[Sequence[Any]], Sequence[object]]) -> None:
    """Runs tasks, each of them until it submits a query, and again from there on when all have submitted.

    A task that raises ends, and no other one with it. Each task has a context of its own (`contextvars`).

    Args:
        execute: gets the queries of several tasks, and gives for each its result, or the Exception to raise where it
        was
            submitted; what it raises itself is raised in all of them.
    """
    if len(tasks) == 1:
        Context().run(_run_guarded, tasks[0])
        return
    waiting: list[tuple[_TaskGreenlet, Any]] = []
    for task in tasks:
        _resume(waiting, _TaskGreenlet(_run_guarded), task)
    while waiting:
        batch, waiting = waiting, []
        try:
            results = execute([query for _, query in batch])
        except Exception as problem:  # noqa: BLE001 - each task raises it where it submitted its query
            results = [problem] * len(batch)
        for (task_greenlet, _), result in zip(batch, results, strict=True):
            _resume(waiting, task_greenlet, result)


def may_submit() -> bool:
    """Whether the caller is a task beside others, and so may `submit`."""
    return type(getcurrent()) is _TaskGreenlet


def submit(query: object) -> Any:
    """The result of a query, for which other tasks run meanwhile.

    Raises:
        Exception: that was given for a result.
    """
    result = getcurrent().parent.switch(query)  # type: ignore[union-attr]  # a task has one
    if isinstance(result, Exception):
        # Of several tasks that get the same one, none shall find the others' frames in it.
        raise result.with_traceback(None)
    return result


def _resume(waiting: list[tuple[_TaskGreenlet, Any]], task: _TaskGreenlet, value: Any) -> None:
    query = task.switch(value)
    if not task.dead:
        waiting.append((task, query))


def _run_guarded(task: Task) -> None:
    try:
        task()
    except BaseException:
        logger.critical("A task failed", exc_info=True)
