"""Password hashes as other systems dump them, brought into the form in which hashers check them (accounts.hashers)."""

import binascii
import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence

MAX_LENGTH = 255
# A check takes half a second at most (accounts.passwords), and so much memory.
MAX_BCRYPT_ROUNDS = 13
MAX_MEMORY_KIB = 128 * 1024
MAX_ARGON2_WORK = 256 * 1024
MAX_ARGON2_LANES = 16
MAX_SCRYPT_WORK = 1 << 20
MAX_PBKDF2_PASSES = {"sha1": 1_500_000, "sha256": 1_500_000, "sha512": 500_000}

_TOO_COSTLY = "Checking this hash would take too much time or memory. Omit it and have the user set a password."
_UNKNOWN = "Must be an Argon2, bcrypt, scrypt or PBKDF2 hash in a format that the guide lists (/docs/import-users)."


def parse_password_hash(text: str) -> str:
    """The hash as it is stored.

    Raises:
        ValueError: it is of another form, or its check would take too long or too much memory.
    """
    for form, build in _FORMS:
        if found := re.fullmatch(form.format(**_GROUPS), text, re.ASCII):
            stored = build({name: value for name, value in found.groupdict().items() if value})
            if len(stored) > MAX_LENGTH:
                break
            return stored
    raise ValueError(_UNKNOWN)


def _bound(is_bounded: bool, is_sound: bool = True) -> None:
    if not is_sound:
        raise ValueError(_UNKNOWN)
    if not is_bounded:
        raise ValueError(_TOO_COSTLY)


def _decode(text: str) -> bytes:
    try:
        # The alphabet of passlib has a dot for the plus.
        unpadded = text.rstrip("=").replace(".", "+")
        return b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True)
    except binascii.Error:
        raise ValueError(_UNKNOWN) from None


def _encode(raw: bytes) -> str:
    return b64encode(raw).decode().rstrip("=")


def _read(given: Mapping[str, str]) -> tuple[bytes, bytes]:
    """The salt, in base64 or as text, and what was derived with it, in base64 or hexadecimal digits."""
    salt = given["text"].encode() if "text" in given else _decode(given["salt"])
    return salt, bytes.fromhex(given["hexadecimal"]) if "hexadecimal" in given else _decode(given["derived"])


def _build_argon2(given: Mapping[str, str]) -> str:
    memory, passes, lanes = (int(given[name]) for name in ("memory", "passes", "lanes"))
    salt, derived = _read(given)
    is_bounded = memory <= MAX_MEMORY_KIB and memory * passes <= MAX_ARGON2_WORK and lanes <= MAX_ARGON2_LANES
    _bound(is_bounded, memory >= 8 * lanes and len(salt) >= 8 and len(derived) >= 12)
    costs = f"m={memory},t={passes},p={lanes}"
    return f"phc${given['kind']}$v=19${costs}${_encode(salt)}${_encode(derived)}"


def _build_bcrypt(given: Mapping[str, str]) -> str:
    rounds = given["rounds"]
    _bound(int(rounds) <= MAX_BCRYPT_ROUNDS, int(rounds) >= 4)
    # Libraries write 2a, 2b or 2y for the same function.
    return f"{given.get('kind', 'bcrypt')}$$2b${rounds}${given['rest']}"


def _build_pbkdf2(given: Mapping[str, str]) -> str:
    (salt, derived), digest, passes = _read(given), given.get("digest", "sha1"), int(given["passes"])
    size = hashlib.new(digest).digest_size
    is_bounded = passes * -(-len(derived) // size) <= MAX_PBKDF2_PASSES[digest]
    _bound(is_bounded, len(derived) >= (size if "text" in given else 16))
    return f"phc$pbkdf2-{digest}$i={passes}${_encode(salt)}${_encode(derived)}"


def _build_scrypt(given: Mapping[str, str]) -> str:
    salt, derived = _read(given)
    n = int(given["n"]) if "n" in given else 1 << min(int(given["exponent"]), 32)
    r, p = int(given["r"]), int(given["p"])
    is_bounded = n * r <= MAX_MEMORY_KIB * 8 and n * r * p <= MAX_SCRYPT_WORK
    _bound(is_bounded, n > 1 and n & (n - 1) == 0 and len(derived) >= (64 if "text" in given else 16))
    return f"phc$scrypt$ln={n.bit_length() - 1},r={r},p={p}${_encode(salt)}${_encode(derived)}"


_PARTS = {
    **dict.fromkeys(("memory", "passes", "lanes", "exponent", "n", "r", "p"), "[1-9][0-9]{0,7}"),
    **dict.fromkeys(("salt", "derived"), "[A-Za-z0-9+/.]+={0,2}"),
    "digest": "sha1|sha256|sha512",
    "hexadecimal": "(?:[0-9a-f]{2})+",
    "text": "[!-#%-~]+",
}
_GROUPS = {name: f"(?P<{name}>{pattern})" for name, pattern in _PARTS.items()}
# Each form with the function that stores it. All but bcrypt are stored as PHCPasswordHasher's, Argon2 too, because
# `argon2` marks what was hashed here (users.models.PASSWORD_PREFIX). Django and werkzeug, whose salt is a text, derive
# a whole digest.
_FORMS: Sequence[tuple[str, Callable[..., str]]] = (
    (
        r"(argon2|phc)?\$(?P<kind>argon2(id|i|d))\$v=19\$m={memory},t={passes},p={lanes}\${salt}\${derived}",
        _build_argon2,
    ),
    (r"((?P<kind>bcrypt|bcrypt_sha256)\$)?\$2[aby]\$(?P<rounds>[0-9]{{2}})\$(?P<rest>[./\w]{{53}})", _build_bcrypt),
    (r"pbkdf2_{digest}\${passes}\${text}\${derived}", _build_pbkdf2),
    (r"(phc)?\$pbkdf2(-{digest})?\$(i=)?{passes}\${salt}\${derived}", _build_pbkdf2),
    (r"pbkdf2:{digest}:{passes}\${text}\${hexadecimal}", _build_pbkdf2),
    (r"scrypt\${n}\${text}\${r}\${p}\${derived}", _build_scrypt),
    (r"(phc)?\$scrypt\$ln={exponent},r={r},p={p}\${salt}\${derived}", _build_scrypt),
    (r"scrypt:{n}:{r}:{p}\${text}\${hexadecimal}", _build_scrypt),
)
