"""The keys that sign the tokens of a login: HMAC with a secret text, or Ed25519 with a private key (RFC 8037)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from jwt.utils import base64url_encode

_PEM = "-----BEGIN "


@dataclass(frozen=True)
class SigningKey:
    """A key with its algorithm, which no token can choose.

    Attributes:
        id: the `kid` of its tokens (RFC 7515, section 4.1.4). It tells nothing of the key.
        algorithm: `HS256` or `EdDSA`.
        public_jwk: the public key (RFC 7517); None for a secret.
    """

    id: str
    algorithm: str
    signing: bytes | Ed25519PrivateKey = field(repr=False)
    verifying: bytes | Ed25519PublicKey = field(repr=False)
    public_jwk: Mapping[str, str] | None = None


def parse_signing_key(text: str) -> SigningKey:
    """The key of a setting: any text is a secret, but for an Ed25519 private key in PEM.

    Raises:
        ValueError: a PEM that holds no unencrypted Ed25519 private key.
    """
    if not text.startswith(_PEM):
        digest = hmac.new(text.encode(), b"kid", hashlib.sha256).digest()
        return SigningKey(base64url_encode(digest).decode()[:16], "HS256", text.encode(), text.encode())
    try:
        private = load_pem_private_key(text.encode(), password=None)
    except (TypeError, ValueError) as error:
        raise ValueError("The PEM cannot be read.") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError("The PEM holds no Ed25519 private key.")  # noqa: TRY004 - the text is wrong, not its type
    public = private.public_key()
    # In the order of RFC 7638, whose thumbprint is the id.
    members = {
        "crv": "Ed25519",
        "kty": "OKP",
        "x": base64url_encode(public.public_bytes(Encoding.Raw, PublicFormat.Raw)).decode(),
    }
    thumbprint = hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest()
    key_id = base64url_encode(thumbprint).decode()
    jwk = members | {"kid": key_id, "alg": "EdDSA", "use": "sig"}
    return SigningKey(key_id, "EdDSA", private, public, jwk)
