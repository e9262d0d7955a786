"""The secrets of webhooks, and the signatures of what is sent: https://www.standardwebhooks.com."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from collections.abc import Iterable

from config.api.sealing import seal, unseal

SECRET_BYTES = 32
_SALT = "config.events.webhooks"


def build_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """A secret as its owner gets it, once."""
    return f"whsec_{b64encode(secret).decode()}"


def seal_secret(secret: bytes) -> bytes:
    """A secret as it is stored: it signs, so that no digest will do, and a dump of the database does not show it."""
    return seal(secret, _SALT)


def open_secret(sealed: bytes) -> bytes:
    """The secret that was sealed.

    Raises:
        InvalidTag: with none of the service's present keys.
    """
    return unseal(sealed, _SALT)


def sign(message_id: str, timestamp: int, body: bytes, keys: Iterable[bytes]) -> dict[str, str]:
    """The headers of a message, with a signature by each of the keys."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
