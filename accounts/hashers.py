from threading import Lock

from django.contrib.auth.hashers import Argon2PasswordHasher

from config.http.blocking import get_blocking_backend

# Of a process: more would take each other's processor, and 19 MiB each.
_one_at_a_time = Lock()


class Argon2idPasswordHasher(Argon2PasswordHasher):
    """Argon2id with OWASP's parameters (Password Storage Cheat Sheet): 19 MiB, two passes, one lane.

    Django's defaults take 100 MiB and 0.3 s for each request with Basic authentication.
    """

    time_cost = 2
    memory_cost = 19 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        def encode() -> str:
            with _one_at_a_time:
                encoded: str = super(Argon2idPasswordHasher, self).encode(password, salt)
                return encoded

        return get_blocking_backend().run(encode)

    def verify(self, password: str, encoded: str) -> bool:
        def verify() -> bool:
            with _one_at_a_time:
                return super(Argon2idPasswordHasher, self).verify(password, encoded)

        return get_blocking_backend().run(verify)
