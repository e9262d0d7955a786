"""Runs the requests of one thread side by side, so that the queries that they submit are sent in one batch.

Replaces: one request after the other, each of which waits for its own queries. Buys: a process that waits for the
database sleeps, and finds the processor's caches filled by others when it wakes up; tasks that wait together sleep
once.

A task runs until it submits a query. Between two queries it has the thread for itself. A transaction submits nothing:
it is never interleaved with another task. What waits for the disk comes last: others are answered before it.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, NamedTuple

from greenlet import GreenletExit, getcurrent, greenlet

logger = logging.getLogger(__name__)

Task = Callable[[], None]
# Gets the queries of several tasks, and gives for each its result, or the Exception to raise where it was submitted.
# What it raises itself is raised in all of them.
Execute = Callable[[Sequence[Any]], Sequence[object]]


class _TaskGreenlet(greenlet):
    """Runs one task after the other, each of which can be left in the middle and resumed.

    It outlives them: Python maps memory for the frames of a greenlet when it begins, and returns it when that ends.
    """


class _Begin(NamedTuple):
    """What a task is begun with."""

    task: Task


# What a greenlet gives when its task has ended.
_ENDED = object()


class _IdleGreenlets(threading.local):
    """Those of this thread that have no task."""

    def __init__(self) -> None:
        self.all: list[_TaskGreenlet] = []


_idle = _IdleGreenlets()


class _Submitted(NamedTuple):
    task: _TaskGreenlet
    execute: Execute
    query: Any
    comes_last: bool


def run(tasks: Sequence[Task], give_way: Callable[[], None] = lambda: None) -> None:
    """Runs tasks, each of them until it submits a query, and again from there on when all have submitted.

    A task that raises ends, and no other one with it. Each task has a context of its own (`contextvars`).

    Args:
        tasks: the tasks.
        give_way: is called each time before one of several tasks goes on.
    """
    if len(tasks) == 1:
        Context().run(_run_guarded, tasks[0])
        return
    waiting: list[_Submitted] = []
    for task in tasks:
        give_way()
        _resume(waiting, _take_greenlet(), _Begin(task))
    while waiting:
        batches: dict[Execute, list[_Submitted]] = {}
        first = [submitted for submitted in waiting if not submitted.comes_last]
        for submitted in first or waiting:
            batches.setdefault(submitted.execute, []).append(submitted)
        waiting = [submitted for submitted in waiting if submitted.comes_last] if first else []
        for execute, batch in batches.items():
            try:
                results = execute([submitted.query for submitted in batch])
            except Exception as problem:  # noqa: BLE001 - each task raises it where it submitted its query
                results = [problem] * len(batch)
            for submitted, result in zip(batch, results, strict=True):
                give_way()
                _resume(waiting, submitted.task, result)


def may_submit() -> bool:
    """Whether the caller is a task beside others, and so may `submit`."""
    return type(getcurrent()) is _TaskGreenlet


def submit(execute: Execute, query: object, *, comes_last: bool = False) -> Any:
    """The result of a query, for which other tasks run meanwhile.

    Args:
        execute: runs it with those that others submit for the same one.
        query: what it gets.
        comes_last: whether it waits until the other tasks have ended, or have submitted such queries, too.

    Raises:
        Exception: that was given for a result.
    """
    result = getcurrent().parent.switch((execute, query, comes_last))  # type: ignore[union-attr]  # a task has one
    if isinstance(result, Exception):
        # Of several tasks that get the same one, none shall find the others' frames in it.
        raise result.with_traceback(None)
    return result


def step_back() -> None:
    """Has the other tasks go on until they have ended, or have nothing left but what comes last, too."""
    if may_submit():
        submit(_execute_nothing, None, comes_last=True)


def _execute_nothing(queries: Sequence[object]) -> Sequence[object]:
    return queries


def _take_greenlet() -> _TaskGreenlet:
    idle = _idle.all
    while idle:
        taken = idle.pop()
        if not taken.dead:
            break
    else:
        taken = _TaskGreenlet(_run_tasks)
    taken.parent, taken.gr_context = getcurrent(), Context()
    return taken


def _resume(waiting: list[_Submitted], task: _TaskGreenlet, value: Any) -> None:
    submitted = task.switch(value)
    if submitted is _ENDED:
        # Nothing of the task stays with it.
        task.gr_context = None
        _idle.all.append(task)
    elif task.dead:
        return
    else:
        waiting.append(_Submitted(task, *submitted))


def _run_tasks(given: _Begin) -> None:
    while True:
        if not _run_guarded(given.task):
            return
        # The task must not stay with its greenlet.
        del given
        given = getcurrent().parent.switch(_ENDED)  # type: ignore[union-attr]  # the one that runs all tasks


def _run_guarded(task: Task) -> bool:
    """Runs a task. Returns whether its greenlet may go on."""
    try:
        task()
    except BaseException as error:
        logger.critical("A task failed", exc_info=True)
        return not isinstance(error, GreenletExit)
    return True
