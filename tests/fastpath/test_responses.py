"""What answers are made of does what Django's does."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse
from django.http.response import BadHeaderError, ResponseHeaders
from django.utils.cache import patch_vary_headers
from hypothesis import given
from hypothesis import strategies as st
from rest_framework import response as drf

from config.fastpath.responses import Response
from config.http.headers import Headers, give, give_missing, vary_on

NAMES = st.sampled_from(["Link", "link", "Vary", "ETag", "A\r\nB", "Ü"])
VALUES = st.text(max_size=8) | st.integers() | st.binary(max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["set", "default", "delete"]), NAMES, VALUES), max_size=8))
def test_headers_are_those_of_django(steps: list[tuple[str, str, Any]]) -> None:
    ours, theirs = Headers(), ResponseHeaders({})
    for step, name, value in steps:
        outcomes = []
        for headers in (ours, theirs):
            try:
                if step == "set":
                    headers[name] = value
                elif step == "default":
                    headers.setdefault(name, value)
                else:
                    del headers[name]
            except (BadHeaderError, UnicodeError) as error:
                outcomes.append(type(error))
            else:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1]
    assert list(ours.items()) == list(theirs.items())
    for name in ("Link", "vary", "Other"):
        assert (ours.get(name, "none"), name in ours) == (theirs.get(name, "none"), name in theirs)


@pytest.mark.parametrize("kind", [Response, HttpResponse])
def test_headers_made_before_are_put_on_any_answer(kind: type[HttpResponse]) -> None:
    made = Headers({"link": "made", "ETag": "made"})
    one, another = kind(headers={"Link": "own"}), kind(headers={"Link": "own"})
    give(one, made)
    give_missing(another, made)
    for answer in (one, another):
        answer["ETag"] = "changed"
    assert (one["Link"], another["Link"]) == ("made", "own")
    assert dict(made.items()) == {"link": "made", "ETag": "made"}


@pytest.mark.parametrize("present", [None, "Accept", "accept, Cookie", "*"])
def test_vary_is_joined_as_django_joins_it(present: str | None) -> None:
    ours, theirs = HttpResponse(), HttpResponse()
    if present:
        ours["Vary"] = theirs["Vary"] = present
    vary_on(ours, "Accept", "Origin")
    patch_vary_headers(theirs, ("Accept", "Origin"))
    assert ours["Vary"] == theirs["Vary"]


def test_response_has_all_that_drfs_has_and_shares_nothing_that_changes() -> None:
    one, another, theirs = Response({"a": 1}, 201), Response(), drf.Response({"a": 1}, 201)
    assert vars(one).keys() - {"status_code"} == vars(theirs).keys() - {"status_code"}
    differing = {name for name, value in vars(theirs).items() if vars(one)[name] != value}
    assert differing == {"headers"}
    assert (one.status_code, another.status_code) == (201, 200)
    unchanging = (str, int, bool, type(None))
    shared = {name for name, value in vars(one).items() if value is vars(another)[name]}
    assert {name for name in shared if not isinstance(vars(one)[name], unchanging)} == set()
