"""Runs calls that block their thread for long, such as password hashes, where they delay nobody else."""

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from django.conf import settings
from django.utils.module_loading import import_string

Result = TypeVar("Result")


class BlockingBackend:
    """Runs it in the caller's thread, which is enough for a server that gives each request a thread.

    A subclass may be named by the setting BLOCKING_BACKEND.
    """

    def run(self, function: Callable[[], Result]) -> Result:
        """Returns what the function returns, or raises what it raises."""
        return function()

    def sleep(self, seconds: float) -> None:
        """Waits for a number of seconds."""
        time.sleep(seconds)


@cache
def get_blocking_backend() -> BlockingBackend:
    """The backend that the settings name."""
    return import_string(settings.BLOCKING_BACKEND)()
