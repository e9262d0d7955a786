"""The headers and responses of the fast path do what Django's and DRF's do."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse
from django.http.response import BadHeaderError, ResponseHeaders
from django.utils.cache import patch_vary_headers
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from config.fastpath.http import FastHeaders, FastResponse
from config.http.headers import vary_on

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


@pytest.mark.parametrize("present", [None, "Accept", "accept, Cookie", "*"])
def test_vary_is_merged_as_django_merges_it(present: str | None) -> None:
    ours, theirs = HttpResponse(), HttpResponse()
    if present:
        ours["Vary"] = theirs["Vary"] = present
    vary_on(ours, "Accept", "Origin")
    patch_vary_headers(theirs, ("Accept", "Origin"))
    assert ours["Vary"] == theirs["Vary"]


@pytest.mark.parametrize(("data", "status"), [({"a": "Grüße"}, 200), (None, 204)])
def test_response_is_rendered_as_by_drf(data: Any, status: int) -> None:
    renderer, rendered = JSONRenderer(), []
    for response_class in (FastResponse, Response):
        response = response_class(data, status, headers={"Link": "<a>"})
        response.accepted_renderer, response.accepted_media_type = renderer, renderer.media_type
        response.renderer_context = {}
        seen: list[bytes] = []
        response.add_post_render_callback(lambda done, seen=seen: seen.append(done.content))
        response.render()
        rendered.append((response.content, sorted(response.headers.items()), seen))
    assert rendered[0] == rendered[1]
