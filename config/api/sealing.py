"""Encrypts what a client or a dump of the database must neither show nor change, with a key made from SECRET_KEY.

AES-SIV (RFC 5297) encrypts and authenticates without a nonce: the same data, sealed twice, has the same bytes.
"""

from contextlib import suppress
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings
from django.utils.crypto import salted_hmac


def seal(data: bytes, salt: str, *bindings: bytes) -> bytes:
    """Seals data.

    Args:
        data: what is encrypted.
        salt: for what it is sealed: other purposes have other keys.
        bindings: what is authenticated with it.
    """
    return _build_cipher(settings.SECRET_KEY, salt).encrypt(data, [*bindings])


def unseal(sealed: bytes, salt: str, *bindings: bytes) -> bytes:
    """Opens what was sealed with the same salt and bindings, by SECRET_KEY or one of SECRET_KEY_FALLBACKS.

    Raises:
        InvalidTag: by none of them.
    """
    for secret_key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        with suppress(InvalidTag):
            return _build_cipher(secret_key, salt).decrypt(sealed, [*bindings])
    raise InvalidTag


# For the current secret and a few previous ones.
@lru_cache(maxsize=16)
def _build_cipher(secret_key: str, salt: str) -> AESSIV:
    return AESSIV(salted_hmac(salt, "", secret_key, algorithm="sha512").digest())
