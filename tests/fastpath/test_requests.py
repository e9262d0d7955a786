"""A plain query is parsed to what Django makes of it."""

import re

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from config.fastpath.http import _PLAIN_QUERY, parse_plain_query

NAMES = st.sampled_from(["page", "limit", "a_b", "x-y", "a.b", "~", "1"])
VALUES = st.text("abcXYZ019._~-", max_size=8)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=50))
def test_plain_query_is_read_as_django_reads_it(parts):
    query = "&".join(f"{name}={value}" for name, value in parts)
    assert _PLAIN_QUERY.fullmatch(query)
    read = parse_plain_query(query)
    assert (list(read.lists()), read.encoding) == (list(QueryDict(query).lists()), QueryDict(query).encoding)
    with pytest.raises(AttributeError, match="immutable"):
        read["page"] = "2"


@given(st.from_regex(re.compile(r"[ab=&+%;.é]{0,12}"), fullmatch=True))
def test_query_that_is_taken_for_plain_is_read_as_django_reads_it(query):
    if _PLAIN_QUERY.fullmatch(query):
        assert list(parse_plain_query(query).lists()) == list(QueryDict(query.encode("latin-1")).lists())


NOT_PLAIN = (
    *("a", "a=1&", "&a=1", "a=1&&b=2", "a=%41", "a=1+2", "a=1=2", "=1", "a=é", "api_key=k", "a=1&api_key=k"),
    "a=1\n",
)


@pytest.mark.parametrize("query", [*NOT_PLAIN, "&".join(["a=1"] * 51)])
def test_query_with_something_to_decode_or_to_take_out_is_left_to_django(query):
    assert not _PLAIN_QUERY.fullmatch(query)
