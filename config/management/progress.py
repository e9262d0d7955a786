"""A progress bar on terminals."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[int], None]


@contextmanager
def show_progress(name: str, total: int) -> Iterator[Advance]:
    """Shows a progress bar during the block, if the standard error is a terminal.

    Args:
        name: the text before the bar.
        total: how many steps there are.

    Yields:
        A function to be called with the number of steps just completed.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=total)
        yield lambda steps: bar.advance(task, steps)
