"""The lanes in which a server may run requests: a view declares its own, by method (`lanes`)."""

from enum import Enum

# A request that has not begun by then, or got no connection, is answered 503: its client is about to give up.
MAX_SECONDS_TO_WAIT = 5.0


class Lane(Enum):
    """The lanes in which requests run.

    Attributes:
        NONE: at once, whatever waits: for responses that need no database and take no time.
        FAST: in the thread of the event loop, which runs others while it waits.
        SLOW: where it delays no other request but slow ones.
        MONITORING: as SLOW, but without a queue: it is requested when others wait for long.
    """

    NONE = "none"
    FAST = "fast"
    SLOW = "slow"
    MONITORING = "monitoring"
