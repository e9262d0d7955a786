"""The keys that sign the tokens of a login: HMAC with a secret text, or Ed25519 with a private key (RFC 8037)."""

import hmac
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from jwt import PyJWK, PyJWTError
from jwt.algorithms import get_default_algorithms
from jwt.utils import base64url_encode


def parse_signing_key(text: str) -> PyJWK:
    """The key of a setting, with its algorithm, which no token can choose, and its `kid`, which tells nothing of it.

    Raises:
        ValueError: a PEM of another kind, or a text of which PyJWT knows that it is no secret, such as an SSH key.
    """
    algorithm: Any = get_default_algorithms()["EdDSA" if "-----BEGIN " in text else "HS256"]
    try:
        members = algorithm.to_jwk(algorithm.prepare_key(text), as_dict=True)
        # A public key has neither, and PyJWK refuses Ed448.
        secret = members["k"] if "k" in members else members["d"]
        key_id = base64url_encode(hmac.digest(secret.encode(), b"kid", "sha256")).decode()[:16]
        return PyJWK(members | {"kid": key_id})
    except (KeyError, PyJWTError, TypeError, UnsupportedAlgorithm, ValueError):
        raise ValueError("Must be a random text, or an unencrypted Ed25519 private key in PEM.") from None
