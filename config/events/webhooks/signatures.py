"""The secrets of webhooks, and the signatures of what is sent: https://www.standardwebhooks.com."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings
from django.utils.crypto import salted_hmac

SECRET_BYTES = 32


def build_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """A secret as its owner gets it, once."""
    return f"whsec_{b64encode(secret).decode()}"


def seal_secret(secret: bytes) -> bytes:
    """A secret as it is stored: it signs, so that no digest will do, and a dump of the database does not show it."""
    return _build_cipher(settings.SECRET_KEY).encrypt(secret, None)


def open_secret(sealed: bytes) -> bytes:
    """The secret that was sealed by SECRET_KEY, or by one of before.

    Raises:
        InvalidTag: by none of them.
    """
    for earlier in settings.SECRET_KEY_FALLBACKS:
        with suppress(InvalidTag):
            return _build_cipher(earlier).decrypt(sealed, None)
    return _build_cipher(settings.SECRET_KEY).decrypt(sealed, None)


@lru_cache(maxsize=16)
def _build_cipher(secret_key: str) -> AESSIV:
    return AESSIV(salted_hmac("config.events.webhooks", "", secret_key, algorithm="sha512").digest())


def sign(message_id: str, timestamp: int, body: bytes, keys: Iterable[bytes]) -> dict[str, str]:
    """The headers of a message, with a signature by each of the keys."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
