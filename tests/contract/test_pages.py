"""Every endpoint to a browser: the answer that a program gets, on a page."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from config.http.media_types import HTML, JSON, NDJSON
from tests.conftest import Caller
from tests.contract.matrix import by_turns, lines, lines_outside
from tests.contract.routes import routes
from tests.contract.world import World, rolled_back

pytestmark = pytest.mark.django_db

ROUTES = {route.template: route for route in routes()}
LINES = [line for line in lines() if line.operation == line.method]
REQUESTS = {(line.template, method): line for line in LINES for method in ("GET", "OPTIONS", line.method)}
# By method, so that the requests of each method take both turns.
TURNS = [(turn, *asked) for turn, asked in enumerate(sorted(REQUESTS, key=itemgetter(1)))]


def get_browsers(world: World) -> dict[str, Caller]:
    return {"nobody": Caller(), **{role: world.credentials[role]["session"] for role in ("user", "admin")}}


def is_page(response: Any) -> bool:
    return response.headers.get("Content-Type") == "text/html; charset=utf-8" and b"<h1" in response.content


@pytest.mark.parametrize(("first", "template", "method"), TURNS)
def test_answer_to_a_browser_is_a_page_of_the_same_status(world: World, first: int, template: str, method: str) -> None:
    """With and without a version in the address, by turns of the browsers."""
    line, target = REQUESTS[template, method], world.people["user"]
    for turn, (name, caller) in enumerate(get_browsers(world).items(), first):
        for prefix in by_turns(turn, ("", "/api/v2")):
            path = world.path(ROUTES[template], target, prefix)
            as_json, page = (world.fetch(line, path, caller, target, method, Accept=accept) for accept in (JSON, HTML))
            assert as_json.status_code == page.status_code < 500, (name, prefix)
            is_whole = page.status_code == 204 or as_json.headers["Content-Type"] == NDJSON
            assert is_page(page) or is_whole, (name, prefix)


@pytest.mark.parametrize(("template", "method"), [each[:2] for each in lines_outside()])
def test_address_outside_of_the_api_has_no_fault_in_a_browser(world: World, template: str, method: str) -> None:
    path = f"/{template.replace('<slug:page>', 'errors')}"
    for name, caller in get_browsers(world).items():
        for asked in (method, "OPTIONS"):
            with rolled_back():
                assert caller.fetch(asked, path, Accept=HTML).status_code < 500, (name, asked)
