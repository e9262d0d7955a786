"""How a worker has clients close their connections before it ends.

Granian closes idle connections as soon as a worker ends. A request that is on its way then is lost, and a proxy may not
send a POST a second time (RFC 9110, section 9.2.2). So for a moment before that, the worker still answers, and each
response says `Connection: close` (RFC 9112, section 9.6). Connections that are idle afterwards are hardly used.
"""

import os
import signal
from asyncio import AbstractEventLoop

# The moment.
SECONDS_TO_DRAIN = 0.5


class Drain:
    """Knows whether this worker is about to end, by SIGTERM.

    Attributes:
        is_on: whether it is, and each answer has its client close the connection.
    """

    is_on = False

    def prepare(self, loop: AbstractEventLoop) -> None:
        """Takes SIGTERM from Granian, and leaves it SIGINT, by which it ends the worker at once."""
        loop.add_signal_handler(signal.SIGTERM, self._start, loop)

    def _start(self, loop: AbstractEventLoop) -> None:
        self.is_on = True
        loop.call_later(SECONDS_TO_DRAIN, end_at_once)


def end_at_once() -> None:
    """Ends this worker: closes idle connections, and answers the requests under way."""
    os.kill(os.getpid(), signal.SIGINT)


drain = Drain()
