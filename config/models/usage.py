"""Who uses which version of the API, and with which responses."""

from django.conf import settings
from django.db import models

from config.models.erasure import VisibleManager


class VersionUse(models.Model):
    """How many requests a credential made to a version of the API on a day (UTC).

    Attributes:
        user: None for requests without a good credential.
        kind: of the credential, as a Principal has it.
        credential: which one of its kind, as far as it has a name: the prefix of an API key, a client id.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    version = models.IntegerField()
    # CASCADE: a user's counts are removed with the user.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    archived = ("day", "version", "kind", "credential", "count")
    kind = models.TextField(db_collation="C", blank=True)
    credential = models.TextField(db_collation="C", blank=True)
    count = models.BigIntegerField()

    objects = VisibleManager()

    class Meta:
        ordering = ["-day", "-id"]
        verbose_name = "use of a version"
        verbose_name_plural = "use of versions"
        indexes = [
            models.Index(fields=["-day", "-id"], name="version_uses_day"),
            # For the last who use a version that is to end.
            models.Index(fields=["version", "-day", "-id"], name="version_uses_version"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "day", "version", "kind", "credential"],
                nulls_distinct=False,
                name="version_uses_once",
            )
        ]

    def __str__(self) -> str:
        return f"version {self.version} on {self.day}: {self.count}"


class AnswerCount(models.Model):
    """How many answers a version of the API gave on a day (UTC), by their status.

    A day has a few dozen rows, which identify no user: they do not expire.
    """

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    version = models.IntegerField()
    status = models.PositiveSmallIntegerField()
    count = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "version", "status"], name="answer_counts_once")]

    def __str__(self) -> str:
        return f"{self.count} answers {self.status} of version {self.version} on {self.day}"
