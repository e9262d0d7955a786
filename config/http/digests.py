"""Keyed digests of what comes with every request."""

import hashlib
import hmac
from functools import lru_cache


def salted_hmac(salt: str, text: str, secret: str) -> hmac.HMAC:
    """What Django's function of this name makes by SHA-256. What depends on the key alone is made once."""
    digest = _keyed(salt, secret).copy()
    digest.update(text.encode())
    return digest


# Of a few salts, and of the secrets before the present one.
@lru_cache(maxsize=16)
def _keyed(salt: str, secret: str) -> hmac.HMAC:
    return hmac.new(hashlib.sha256(f"{salt}{secret}".encode()).digest(), digestmod="sha256")
