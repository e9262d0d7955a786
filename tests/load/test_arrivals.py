"""The open loop counts from the moment when a request is due, and sends again what nobody has begun to answer."""

import time
from itertools import pairwise

from tests.load.arrivals import Plan, offer
from tests.load.server import serving

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
REQUEST = b"GET / HTTP/1.1\r\n\r\n"
PAUSE = 0.1


def test_wait_for_a_connection_counts_and_does_not_slow_the_arrivals() -> None:
    def answer(number: int) -> bytes:
        time.sleep(PAUSE)
        return ANSWER

    with serving(answer) as port:
        outcomes = offer(Plan(port, [REQUEST], 40.0, 0.2, 1)).outcomes
    assert [outcome.status for outcome in outcomes] == [200] * 8
    assert all(a.due < b.due < 0.2 for a, b in pairwise(outcomes))
    # The eighth was due after 0.175 s, and waited for seven answers.
    assert outcomes[-1].seconds >= 8 * PAUSE - 0.2


def test_request_on_a_connection_that_closes_is_sent_once_more() -> None:
    with serving(lambda number: b"" if number in {1, 4, 5} else ANSWER) as port:
        outcomes = offer(Plan(port, [REQUEST], 50.0, 0.1, 1)).outcomes
    assert [(outcome.status, outcome.resent) for outcome in outcomes] == [
        (200, False),
        (200, True),
        (200, False),
        (0, True),
        (200, False),
    ]


def test_refusal_says_when_to_try_again() -> None:
    with serving(lambda number: REFUSAL) as port:
        outcomes = offer(Plan(port, [REQUEST], 50.0, 0.06, 1)).outcomes
    assert [(outcome.status, outcome.told) for outcome in outcomes] == [(503, True)] * 3
