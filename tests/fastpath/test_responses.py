"""The headers of the fast path do what Django's do."""

from __future__ import annotations

from typing import Any

from django.http.response import BadHeaderError, ResponseHeaders
from hypothesis import given
from hypothesis import strategies as st

from config.fastpath.http import FastHeaders

NAMES = st.sampled_from(["Link", "link", "Vary", "ETag", "A\r\nB", "Ü"])
VALUES = st.text(max_size=8) | st.integers() | st.binary(max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["set", "default", "delete"]), NAMES, VALUES), max_size=8))
def test_headers_are_those_of_django(steps: list[tuple[str, str, Any]]) -> None:
    ours, theirs = FastHeaders({}), ResponseHeaders({})
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
