"""The lanes in which a server may run requests, as far as views and what they call have to do with them.

A view declares its lane. What turns out to be slow only while it runs leaves the fast lane by `leave_fast_lane`.
"""

from enum import Enum

from config.http.request_state import present_state


class Lane(Enum):
    """Where a request runs.

    Attributes:
        NONE: beside the lanes, at once, whatever waits: for what needs no database and takes no time.
        FAST: side by side with other short requests, in the thread that receives all of them.
        SLOW: where it delays no other request but slow ones.
    """

    NONE = "none"
    FAST = "fast"
    SLOW = "slow"


class NeedsSlowLane(BaseException):
    """Ends a request that is too slow for the fast lane, so that it is run again, from its beginning, in the slow one.

    No `except Exception` may make a response of it: what was begun is rolled back, and nothing is answered.
    """


def is_in_fast_lane() -> bool:
    state = present_state.get()
    return state is not None and state.in_fast_lane


def leave_fast_lane() -> None:
    """Call it before what takes long, and before anything is written: in a lane that is meant for it, it does nothing.

    Raises:
        NeedsSlowLane: the request is in the fast lane.
    """
    if is_in_fast_lane():
        raise NeedsSlowLane
