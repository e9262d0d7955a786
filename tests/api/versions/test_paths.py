"""Addresses that hold nothing to quote are told as the standard library quotes them."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from config.api.versions.versioning import get_prefix, strip_prefix
from config.http.headers import quote_address

PATHS = st.text(st.sampled_from("/apiv12-._~ %ü=&;@\n"), max_size=12)
QUERIES = st.text(st.sampled_from("ab1=&%-._~ /?;\xfc\n"), max_size=12)


@given(PATHS, QUERIES)
def test_addresses_are_quoted_as_the_library_does(path: str, query: str) -> None:
    sent = quote(query.encode("latin-1"), safe="/:@!$&'()*+,;=~?%")
    assert quote_address(path, query) == quote(path, safe="/:@!$&'()*+,;=~") + (f"?{sent}" if sent else "")


@given(st.sampled_from(["", "/api", "/api/v1", "/api/v2x", "/apis"]), PATHS)
def test_path_is_its_prefix_and_the_rest(start: str, path: str) -> None:
    whole = start + path
    assert get_prefix(whole) + strip_prefix(whole) == whole
