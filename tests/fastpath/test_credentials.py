"""The short ways of base64url and HMAC give and take what the libraries do."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.fastpath import credentials


@given(st.binary(max_size=40))
def test_bytes_are_encoded_as_by_the_library_and_read_back(content: bytes) -> None:
    text = credentials._encode(content)
    assert text == urlsafe_b64encode(content).rstrip(b"=").decode()
    assert credentials._decode(text) == urlsafe_b64decode(f"{text}==") == content


@given(st.text(st.sampled_from("Az09+/-_=. \nü"), max_size=9))
def test_any_text_is_read_or_refused_as_by_the_library(text: str) -> None:
    try:
        expected = urlsafe_b64decode(f"{text}==")
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            credentials._decode(text)
    else:
        assert credentials._decode(text) == expected
