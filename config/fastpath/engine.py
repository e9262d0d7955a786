"""What the requests of a worker share: the scheduler of their greenlets, and the connections to each database."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

from config.fastpath.greenlets import Scheduler
from config.fastpath.postgresql.base import open_connection, release_connections
from config.fastpath.postgresql.pipeline import TIME_OUTS, Pipeline
from config.fastpath.postgresql.pool import Pool
from config.fastpath.postgresql.shared import SharedConnection

Result = TypeVar("Result")


class Engine:
    """Runs functions in greenlets, whose statements are sent together.

    Args:
        loop: the event loop, in whose thread this is made and used.
        is_given_up: whether nothing is to be expected any more of the database with an alias.
    """

    def __init__(self, loop: AbstractEventLoop, is_given_up: Callable[[str], bool]) -> None:
        self._scheduler = Scheduler(loop, self, release_connections)
        self._is_given_up = is_given_up
        self._shared: dict[str, SharedConnection] = {alias: self._build_shared(alias) for alias in connections}

    async def start(self) -> None:
        """Connects to the databases, as far as they answer."""
        await asyncio.gather(*(shared.pipeline.start() for shared in self._shared.values()))

    def close(self) -> None:
        """Closes all connections that no function uses."""
        for shared in self._shared.values():
            shared.pipeline.close()
            shared.connection_pool.close()
        self._scheduler.close()

    async def run(self, function: Callable[[], Result], caller: Hashable = None) -> Result:
        """See `Scheduler.run`."""
        return await self._scheduler.run(function, caller)

    def get_shared(self, alias: str = DEFAULT_DB_ALIAS) -> SharedConnection:
        """The connection that is shared to a database."""
        return self._shared[alias]

    def get_pool(self, alias: str) -> Pool:
        """The pool of a database."""
        return self._shared[alias].connection_pool

    def _build_shared(self, alias: str) -> SharedConnection:
        is_given_up = partial(self._is_given_up, alias)
        settings: Any = connections.settings[alias]
        shared = SharedConnection(settings, alias)
        shared.pipeline = Pipeline(self._scheduler, partial(open_connection, alias, **TIME_OUTS), is_given_up)
        shared.connection_pool = Pool(self._scheduler, partial(open_connection, alias), is_given_up)
        return shared
