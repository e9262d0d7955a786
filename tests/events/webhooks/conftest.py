from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from config.events.webhooks import deliverer
from tests.conftest import Answer, Caller, wait_for_events
from tests.events.webhooks.receiver import Receiver

TYPES = ["user.updated", "order.created", "post.created"]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.LOCAL = True
    with Receiver().running() as running:
        yield running


def subscribe(caller: Caller, receiver: Receiver, **members: object) -> Answer:
    """The answer to a new webhook, which leads to a receiver."""
    body = {"url": f"http://127.0.0.1:{receiver.port}/hook", "types": TYPES, **members}
    answer = caller.post("/api/v2/webhooks", body)
    assert answer.status == 201, answer
    return answer


def deliver() -> None:
    """Sends what is due of all events that there are."""
    wait_for_events()
    deliverer.deliver(once=True)


def read_types(receiver: Receiver) -> list[str]:
    return [json.loads(body)["type"] for _, body in receiver.messages]
