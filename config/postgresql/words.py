"""The words of rows, for lists that are searched: triggers maintain them in a separate table (config.models.words).

SQL functions define what a word is: `config_split_words` for what somebody looks for, `config_index_words`
for a row. Both fold case and accents. Scripts without blanks between words (Chinese, Japanese, Thai) are cut off from
others; in a row, each of their characters begins a word, so that a search finds them inside their runs.

Reading is bounded: a word that few rows have is read from the index of words; a word that many rows have is looked up
row by row, for a bounded number of rows (config.api.listing.bounded).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pgtrigger
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Func
from django.db.models.sql.compiler import SQLCompiler

from config.postgresql.compiling import fetch_rows
from config.postgresql.triggers import after_statement

# So many characters of a word are kept, and in a script without blanks, so many from each character of a run on. The
# functions contain both numbers, too.
MAX_WORD, MAX_RUN = 64, 16
# The maximum number of words in a search.
MAX_WORDS = 8
# At most so many rows are read because they have a word.
MAX_ROWS = 5_000
# The maximum number of index entries to read to find out which words few rows have: for all words together, and for
# each.
MAX_PROBED, MAX_PROBED_OF_ONE = 20_000, 10_000
# No character comes after it.
_LAST = chr(0x10FFFF)
_BEGINS = "entry.word >= %s AND entry.word < %s"

# A word of a script without blanks between words: Thai to Lao; Myanmar; Khmer; Japanese signs and kana; Chinese
# characters: as the functions have it.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a model's rows.

    Attributes:
        table: in which they are.
        columns: whose words they are.
    """

    model: type[models.Model]
    table: str
    columns: Sequence[str]

    def triggers(self) -> list[pgtrigger.Trigger]:
        remove = f"DELETE FROM {self.table} WHERE row_id"
        new_values, old_values = (
            ", ".join(f"{row}.{column}" for column in ("id", *self.columns)) for row in ("NEW", "OLD")
        )
        return [
            after_statement("index_new_words", pgtrigger.Insert, f"{self.add('arrived')}; RETURN NULL;", new="arrived"),
            pgtrigger.Trigger(
                name="index_changed_words",
                when=pgtrigger.After,
                operation=pgtrigger.UpdateOf("id", *self.columns),
                func=f"""
                    IF ({new_values}) IS DISTINCT FROM ({old_values}) THEN
                        {remove} = OLD.id;
                        {self.add("(SELECT NEW.*) AS changed")};
                    END IF;
                    RETURN NULL;
                """,
            ),
            after_statement(
                "remove_gone_words", pgtrigger.Delete, f"{remove} IN (SELECT id FROM gone); RETURN NULL;", old="gone"
            ),
            after_statement("remove_all_words", pgtrigger.Truncate, f"DELETE FROM {self.table}; RETURN NULL;"),
        ]

    def add(self, rows: str) -> str:
        """The statement that adds the words of rows."""
        text = " || ' ' || ".join(self.columns)
        return (
            f"INSERT INTO {self.table} (row_id, word) "
            f"SELECT id, word FROM {rows} CROSS JOIN LATERAL unnest(config_index_words({text})) AS word"
        )


def split_words(text: str, using: str) -> list[str]:
    """The words of what somebody looks for, folded, each once."""
    return list(dict.fromkeys(fetch_rows("SELECT config_split_words(%s)", [text], using)[0][0]))


def find_rare(words: Words, looked_for: Sequence[str], using: str) -> Sequence[str]:
    """The word that few rows have, or two of them that few rows have together; none if many rows have them.

    Looks only at the index of words, and at a bounded part of it.
    """
    limit = min(MAX_PROBED_OF_ONE, MAX_PROBED // len(looked_for)) if len(looked_for) > 1 else MAX_ROWS
    entries = f"SELECT row_id FROM {words.table} AS entry WHERE {_BEGINS} ORDER BY word LIMIT {limit + 1}"
    probe = f"(SELECT count(*) FROM ({entries}) AS probed)"
    bounds = [bound for word in looked_for for bound in get_bounds(word)]
    (numbers,) = fetch_rows(f"SELECT {', '.join([probe] * len(looked_for))}", bounds, using)
    (first, rarest), *others = sorted(zip(numbers, looked_for, strict=True))
    if first <= min(limit, MAX_ROWS):
        return [rarest]
    if not others or others[0][0] > limit:
        return ()
    pair = [rarest, others[0][1]]
    both = f"SELECT count(*) FROM (({entries}) INTERSECT ({entries})) AS both_words"
    ((rows,),) = fetch_rows(both, [bound for word in pair for bound in get_bounds(word)], using)
    return pair if rows <= MAX_ROWS else ()


class HasWord(Func):
    """Whether the row has a word that begins with some text, looked up in the words of the row."""

    output_field = models.BooleanField()
    # No EXISTS, of which PostgreSQL may make a join with all rows that have the word.
    sql = f"((SELECT word FROM {{table}} AS entry WHERE entry.row_id = {{row}} AND {_BEGINS} LIMIT 1) IS NOT NULL)"

    def __init__(self, words: Words, beginning: str) -> None:
        self.words, self.beginning = words, beginning
        super().__init__(F("pk"))

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: object, **context: Any
    ) -> tuple[str, tuple[Any, ...]]:
        (source,) = self.get_source_expressions()
        return self.build_sql(compiler.compile(source)[0])

    def build_sql(self, row: str) -> tuple[str, tuple[str, str]]:
        return self.sql.format(table=self.words.table, row=row), get_bounds(self.beginning)


class IsAmongRowsWithWord(HasWord):
    """The same for a word that few rows have: they are read from the index of words first.

    Of two such conditions PostgreSQL reads the rows alone that meet both.
    """

    # No IN, for the same reason.
    sql = f"{{row}} = ANY(ARRAY(SELECT row_id FROM {{table}} AS entry WHERE {_BEGINS}))"


def get_bounds(beginning: str) -> tuple[str, str]:
    """The parameters of _BEGINS for words with this beginning."""
    return beginning, beginning + _LAST


def get_words(model: type[models.Model]) -> Words | None:
    return getattr(model, "words", None)
