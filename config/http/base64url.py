"""Base64 in the alphabet of addresses, without padding (RFC 4648, section 5), as tokens and cursors have it."""

from binascii import a2b_base64, b2a_base64

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def encode(content: bytes) -> str:
    return b2a_base64(content, newline=False).translate(_TO_URL).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of a text. As lenient as the library: what must be spelt exactly is encoded again, and compared.

    Raises:
        ValueError: it is no such text.
    """
    # What is left of the padding is not looked at.
    return a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"==")
