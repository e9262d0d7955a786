"""Our keyed digest is that of the standard library, however long the key, and however often it is asked."""

import hmac

from hypothesis import given
from hypothesis import strategies as st

from config.keyed_digest import KeyedDigest


@given(st.binary(max_size=130), st.lists(st.binary(max_size=300), min_size=1, max_size=3))
def test_digest_is_that_of_the_library(key: bytes, messages: list[bytes]) -> None:
    digest = KeyedDigest(key)
    assert [digest.of(message) for message in messages] == [hmac.digest(key, each, "sha256") for each in messages]
