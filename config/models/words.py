"""The words by which the rows of a resource are found (config.postgresql.words)."""

from django.db import models


class Word(models.Model):
    """A word of a row; triggers on the rows keep it.

    A subclass is the table of one resource. The primary key finds the words of a row, and the index, which a subclass
    declares, the rows of a word.
    """

    pk = models.CompositePrimaryKey("row_id", "word")
    row_id = models.BigIntegerField()
    word = models.TextField(db_collation="C")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        # No text of a user.
        return f"word of row {self.row_id}"
