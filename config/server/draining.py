"""How a worker has clients close their connections before it ends.

Granian closes idle connections as soon as a worker ends. A request that is on its way then is lost, and a proxy may not
send a POST a second time (RFC 9110, section 9.2.2). So for a moment before that, the worker goes on to answer, and each
answer says `Connection: close` (RFC 9112, section 9.6), and what is idle afterwards is hardly used.
"""

import os
import signal
from asyncio import AbstractEventLoop

from config.server.answers import Answer

# The longest moment. It ends before that when nothing was answered between two looks.
MAX_SECONDS = 1.0
SECONDS_BETWEEN_LOOKS = 0.2
_CLOSE = ("Connection", "close")


class Drain:
    """Knows whether this worker is told to end, by SIGTERM, and has clients close their connections.

    Attributes:
        is_on: whether it is told to end.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._answered = 0

    def prepare(self, loop: AbstractEventLoop) -> None:
        """Takes SIGTERM from Granian, and leaves it SIGINT, by which it ends the worker at once."""
        loop.add_signal_handler(signal.SIGTERM, self._start, loop)

    def mark(self, answer: Answer) -> Answer:
        """The answer as it is to be sent now."""
        if not self.is_on:
            return answer
        self._answered += 1
        return answer._replace(headers=[*answer.headers, _CLOSE])

    def _start(self, loop: AbstractEventLoop) -> None:
        if not self.is_on:
            self.is_on = True
            self._look(loop, loop.time() + MAX_SECONDS)

    def _look(self, loop: AbstractEventLoop, deadline: float, answered: int = -1) -> None:
        if self._answered == answered or loop.time() >= deadline:
            end_at_once()
        else:
            loop.call_later(SECONDS_BETWEEN_LOOKS, self._look, loop, deadline, self._answered)


def end_at_once() -> None:
    """Ends this worker: idle connections are closed, and what was begun is answered."""
    os.kill(os.getpid(), signal.SIGINT)


drain = Drain()
