"""Tables for reads on replicas (config.postgresql.replicas)."""

from django.db import models


class ReadPosition(models.Model):
    """From which replica a user reads, and what that must have replayed before.

    Of a user without a row nothing is known, and it reads from the primary: rows may be deleted at any time. The table
    is UNLOGGED, so that a new primary knows nothing, either.

    Attributes:
        user_id: of the user. It is no foreign key, which would lock the user's row at each write.
        replica: the alias of its database.
        timeline: of the WAL that the position is of, as its files are named.
        position: in that WAL, in bytes from its beginning.
        waited_at: when a request of the user last waited for the replica.
    """

    user_id = models.BigIntegerField(primary_key=True)
    replica = models.TextField(db_collation="C")
    timeline = models.CharField(max_length=8, db_collation="C")
    position = models.BigIntegerField()
    waited_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id} reads from {self.replica}"


class Timeline(models.Model):
    """The one row by which a replica shows that it follows the present primary, and not one that was lost.

    Attributes:
        name: what the primary calls itself (config.postgresql.replicas). A promoted standby replaces it.
    """

    id = models.SmallIntegerField(primary_key=True)
    name = models.TextField(db_collation="C")

    def __str__(self) -> str:
        return self.name
