"""The tables in which the service counts: what limits are measured by, and how many rows there are."""

from django.db import models


class Counter(models.Model):
    """How often something happened in the present window: failed log-ins, and the requests that quotas count.

    The table is UNLOGGED: a crash of the database forgets the last minute, and nothing waits for the disk.
    """

    key = models.TextField(primary_key=True, db_collation="C")
    window = models.DateTimeField()
    count = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.key}: {self.count}"


class RowCount(models.Model):
    """How many rows of a table lie in a block of ids, as a share of one slot; triggers maintain it (config.postgresql).

    Attributes:
        bits: the block holds the ids that equal `block` without this many of their lowest bits.
        part: the columns by which the counts are grouped, with their values.
    """

    pk = models.CompositePrimaryKey("relation", "bits", "block", "part", "slot")
    relation = models.CharField(max_length=63, db_collation="C")
    bits = models.SmallIntegerField()
    block = models.BigIntegerField()
    part = models.JSONField()
    slot = models.IntegerField()
    rows = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.rows} of {self.relation} in block {self.block} of {self.bits} bits"
