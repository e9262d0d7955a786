"""The words by which the rows of a resource are found (config.postgresql.words)."""

from collections.abc import Callable
from typing import Any

from django.db import models

from config.postgresql.triggers import AnyModel, track
from config.postgresql.words import Words


class Word(models.Model):
    """A word of a row; triggers on the rows keep it.

    A subclass is the table of one resource. The primary key finds the words of a row, and the index the rows of a word.
    """

    pk = models.CompositePrimaryKey("row_id", "word")
    row_id = models.BigIntegerField()
    word = models.TextField(db_collation="C")

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["word", "row_id"], name="%(class)s_by_word")]

    def __str__(self) -> str:
        # No text of a user.
        return f"word of row {self.row_id}"


def track_words(*columns: str) -> Callable[[AnyModel], AnyModel]:
    """Declares that the rows of a model are found by the words of some columns: its lists take `q`.

    Beside a model `Note` it makes another one, `NoteWord`, with the words.

    Args:
        columns: texts that are never null.
    """

    def build(model: Any) -> Words:
        entry: Any = type(f"{model.__name__}Word", (Word,), {"__module__": model.__module__})
        return Words(model, entry._meta.db_table, columns)

    return track("words", build)
