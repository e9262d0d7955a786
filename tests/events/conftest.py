from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from tests.conftest import Caller, wait_for_events

if settings.FAST_PATH:
    from tests.fastpath.conftest import run_together

    __all__ = ["run_together"]


@pytest.fixture
def whole_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the feed shows all events."""
    fetch: Callable[..., Any] = Caller.fetch

    def fetch_whole(caller: Caller, method: str, path: str, *args: Any, **options: Any) -> Any:
        if "/events" in path:
            wait_for_events()
        return fetch(caller, method, path, *args, **options)

    monkeypatch.setattr(Caller, "fetch", fetch_whole)
