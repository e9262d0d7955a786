from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2idPasswordHasher(Argon2PasswordHasher):
    """Argon2id with OWASP's parameters (Password Storage Cheat Sheet): 19 MiB, two passes, one lane.

    Django's defaults take 100 MiB and 0.3 s for each request with Basic authentication.
    """

    time_cost = 2
    memory_cost = 19 * 1024
    parallelism = 1
