"""The password hasher, and the hashers that check imported hashes until the first login rehashes the password."""

import hashlib
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from hmac import compare_digest
from threading import Lock
from typing import Any

import argon2
import bcrypt
from django.contrib.auth import hashers

from config.http.blocking import Result, get_blocking_backend

# Per process: more would compete for the processor, and each takes memory.
_one_at_a_time = Lock()
# For scrypt, including OpenSSL's own overhead.
MAX_MEMORY = 160 * 1024 * 1024


def _compute(function: Callable[[], Result]) -> Result:
    def compute() -> Result:
        with _one_at_a_time:
            return function()

    return get_blocking_backend().run(compute)


class Argon2idPasswordHasher(hashers.Argon2PasswordHasher):
    """Argon2id with OWASP's parameters (Password Storage Cheat Sheet): 19 MiB, two passes, one lane.

    Django's defaults take 100 MiB and 0.3 s for each request with Basic authentication.
    """

    time_cost = 2
    memory_cost = 19 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        return _compute(partial(super().encode, password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        return _compute(partial(super().verify, password, encoded))


class BCryptSHA256PasswordHasher(hashers.BCryptSHA256PasswordHasher):
    def encode(self, password: str, salt: Any) -> str:
        return _compute(partial(super().encode, password, salt))


class BCryptPasswordHasher(hashers.BCryptPasswordHasher):
    def encode(self, password: str, salt: Any) -> str:
        # bcrypt reads 72 bytes of a password. Its library refuses longer ones; other systems truncate them.
        hashed = _compute(partial(bcrypt.hashpw, password.encode()[:72], salt))
        return f"{self.algorithm}${hashed.decode()}"


class PHCPasswordHasher(hashers.BasePasswordHasher):
    """PBKDF2, scrypt, whose salt in Django's forms is a text, and Argon2 from elsewhere: `phc` and a PHC string.

    https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md
    """

    algorithm = "phc"

    def verify(self, password: str, encoded: str) -> bool:
        if encoded.startswith("phc$argon2"):
            return _compute(partial(_verify_argon2, encoded.removeprefix("phc"), password))
        function, given, *texts = self._split(encoded)
        salt, derived = (b64decode(text + "=" * (-len(text) % 4)) for text in texts)
        secret, size = password.encode(), len(derived)
        if function == "scrypt":
            compute = partial(
                hashlib.scrypt,
                secret,
                salt=salt,
                n=1 << given["ln"],
                r=given["r"],
                p=given["p"],
                maxmem=MAX_MEMORY,
                dklen=size,
            )
        else:
            digest = function.removeprefix("pbkdf2-")
            compute = partial(hashlib.pbkdf2_hmac, digest, secret, salt, given["i"], size)
        return compare_digest(_compute(compute), derived)

    def safe_summary(self, encoded: str) -> Any:
        function, given, *_ = self._split(encoded)
        return {"algorithm": function, **given}

    def _split(self, encoded: str) -> tuple[str, dict[str, int], str, str]:
        _, function, *parameters, salt, derived = encoded.split("$")
        given = dict(each.split("=") for each in ",".join(parameters).split(","))
        return function, {name: int(value) for name, value in given.items()}, salt, derived


def _verify_argon2(encoded: str, password: str) -> bool:
    try:
        return argon2.PasswordHasher().verify(encoded, password)
    except argon2.exceptions.VerificationError:
        return False
