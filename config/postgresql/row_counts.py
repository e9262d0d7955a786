"""Exact totals of whole tables, and the way to any row in the order of ids, at one cost however many rows there are.

Triggers keep how many rows lie in each block of ids, in two sizes of blocks, apart by the columns that lists are
filtered by. The counts are ordinary rows: a reader sees those of its snapshot, and a write that is rolled back takes
its counts along.

Writers never wait for each other. Each count is spread over slots, and a transaction writes the first slot that no
other one holds by an advisory lock until its end: so there are as many slots as transactions ever wrote at once.

Until the rows of a removed user are erased (config.erasure), readers subtract them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pgtrigger
from django.apps import apps
from django.db import connection, models, transaction
from django.db.models.expressions import RawSQL

from config.postgresql.compiling import compile_queryset, fetch_rows
from config.postgresql.triggers import AnyModel, after_statement, track
from config.postgresql.visibility import ERASURES, get_owner_column

# A block holds the ids that share all but this many of their lowest bits. Totals are summed over the wide
# blocks; a page is looked for in the narrow blocks of one wide block, then in the rows of one narrow block.
NARROW, WIDE = 12, 18
# Any constants will do, as long as nobody else takes the same advisory locks. Slots are counted from 0.
_LOCK, _REWRITING = 0x726F7773, -1
# Contained in each part of the counts.
_EVERY_PART = ["{}"]

_DIFFERENT = """
SELECT count(*) FROM (
    SELECT bits, block, part, sum(rows) AS rows FROM config_rowcount WHERE relation = %s GROUP BY bits, block, part
) AS stored FULL JOIN ({present}) AS present USING (bits, block, part)
WHERE coalesce(stored.rows, 0) <> coalesce(present.rows, 0)
"""
# OFFSET 0 forbids another join than one look-up by index for each removed user, of whom there are few.
_HIDDEN = f"""
    SELECT hidden.id, hidden.part FROM {ERASURES} AS erasure CROSS JOIN LATERAL (
        SELECT id, {{part}} AS part FROM {{table}}
        WHERE {{owner}} = erasure.user_id AND {{present}} OFFSET 0
    ) AS hidden
"""
_COMPACT = """
WITH spread AS (DELETE FROM config_rowcount WHERE slot = ANY(%s) OR slot = 0 AND rows = 0 RETURNING *)
INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)
SELECT relation, bits, block, part, 0, sum(rows) FROM spread GROUP BY relation, bits, block, part HAVING sum(rows) <> 0
ORDER BY relation, bits, block, part
ON CONFLICT (relation, bits, block, part, slot) DO UPDATE SET rows = config_rowcount.rows + excluded.rows
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a model's rows.

    Attributes:
        columns: by whose values the counts are grouped, each a text with choices.
        present: the condition, in SQL, under which a row counts: that of the model's default manager.
        owner: the column that names the user with whom a row goes.
    """

    model: type[models.Model]
    columns: Sequence[str] = ()
    present: str = "true"
    owner: str | None = None

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    def get_values(self, column: str) -> list[str]:
        """All that a column may hold."""
        field: Any = self.model._meta.get_field(column)
        return [value for value, _ in field.choices]

    def filter(self, rows: models.QuerySet[models.Model], values: Mapping[str, Sequence[str]]) -> "CountedRows | None":
        """The counts of `rows`; None unless they are the model's rows that have one of some values in counted columns.

        Args:
            values: by column.
        """
        if not values.keys() <= set(self.columns):
            return None
        known = self.model._default_manager.all()
        for column, given in values.items():
            known = known.filter(**({column: given[0]} if len(given) == 1 else {f"{column}__in": given}))
        if rows.query.where != known.query.where:
            return None
        parts = [json.dumps(dict(zip(values, part, strict=True))) for part in product(*values.values())]
        return CountedRows(self, rows, parts)

    def get_source(self, bits: int, parts: Sequence[str]) -> tuple[str, list[object]]:
        """The counts by blocks of a size, in SQL, with its parameters: rows of `block` and `rows`.

        A block may come several times, and with a negative number.
        """
        # To ask each of hundreds of counts would take a tenth of a page's time.
        asked: Sequence[str] = () if parts == _EVERY_PART else parts
        contains = " OR ".join(["part @> %s::jsonb"] * len(asked)) or "true"
        counts = f"SELECT block, rows FROM config_rowcount WHERE relation = %s AND bits = %s AND ({contains})"
        if not self.owner:
            return counts, [self.table, bits, *asked]
        hidden = f"SELECT id >> {bits}, -1 FROM ({self.get_hidden()}) AS hidden WHERE {contains}"
        return f"{counts} UNION ALL {hidden}", [self.table, bits, *asked, *asked]

    def get_hidden(self) -> str:
        """The rows of removed users, which the counts still hold, in SQL: `id` and `part` of each."""
        return _HIDDEN.format(table=self.table, owner=self.owner, present=self.present, part=self._part)

    def triggers(self) -> list[pgtrigger.Trigger]:
        arrived, gone = self._changes("arrived", 1), self._changes("gone", -1)
        changed = self._count(f"{arrived} UNION ALL {gone}")
        free = [("free", "integer := 0")]
        return [
            after_statement("count_new_rows", pgtrigger.Insert, self._count(arrived), new="arrived", declare=free),
            after_statement("count_gone_rows", pgtrigger.Delete, self._count(gone), old="gone", declare=free),
            after_statement("count_changed_rows", pgtrigger.Update, changed, new="arrived", old="gone", declare=free),
            after_statement("count_no_rows", pgtrigger.Truncate, f"PERFORM {_REWRITE}; {self._forget()}; RETURN NULL;"),
        ]

    def _changes(self, rows: str, change: int) -> str:
        columns = ", ".join(["id", *self.columns])
        return f"SELECT {columns}, {change} AS change FROM {rows} WHERE {self.present}"

    def _count(self, changes: str) -> str:
        return f"""
            WHILE NOT pg_try_advisory_xact_lock({_LOCK}, free) LOOP free := free + 1; END LOOP;
            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)
            SELECT '{self.table}', bits, block, part, free, rows FROM ({self._counted(changes)}) AS counted
            ON CONFLICT (relation, bits, block, part, slot)
            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;
            RETURN NULL;
        """

    @property
    def _part(self) -> str:
        pairs = ", ".join(f"'{column}', {column}" for column in self.columns)
        return f"jsonb_build_object({pairs})"

    def _counted(self, changes: str) -> str:
        grouped = ", ".join(["bits", "id >> bits", *self.columns])
        # In order, so that after a load in bulk, too, what is summed together lies together.
        return f"""
            SELECT bits, id >> bits AS block, {self._part} AS part, sum(change) AS rows
            FROM ({changes}) AS changes, (VALUES ({NARROW}), ({WIDE})) AS sizes (bits)
            GROUP BY {grouped} HAVING sum(change) <> 0
            ORDER BY bits, block, part
        """

    def _forget(self) -> str:
        return f"DELETE FROM config_rowcount WHERE relation = '{self.table}'"

    def differences(self) -> int:
        """How many counts are not what a look at the rows says, in one snapshot."""
        present = self._counted(self._changes(self.table, 1))
        return int(fetch_rows(_DIFFERENT.format(present=present), [self.table])[0][0])

    @transaction.atomic
    def recount(self) -> None:
        """Recounts the rows. Writers of the table wait."""
        present = self._counted(self._changes(self.table, 1))
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {self.table} IN SHARE MODE")
            cursor.execute(f"SELECT {_REWRITE}")
            cursor.execute(self._forget())
            cursor.execute(
                "INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)"
                f" SELECT '{self.table}', bits, block, part, 0, rows FROM ({present}) AS present"
            )


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows that are counted by triggers: those that have the values of one of `parts`, each a JSON object."""

    counts: Counts
    rows: models.QuerySet[models.Model]
    parts: Sequence[str]

    def get_total(self) -> RawSQL:
        """The number of rows, as an expression."""
        source, params = self.counts.get_source(WIDE, self.parts)
        return RawSQL(f"(SELECT coalesce(sum(rows), 0)::bigint FROM ({source}) AS counts)", params)

    def get_id_at(self, offset: object, *, descending: bool = False) -> RawSQL:
        """The id of the row that `offset` rows come before in the order of ids; null where there are no more.

        The walk through the narrow block begins at its nearer end.
        """
        order = "DESC" if descending else "ASC"
        wide_counts, wide_params = self.counts.get_source(WIDE, self.parts)
        narrow_counts, narrow_params = self.counts.get_source(NARROW, self.parts)
        wide = _block_at("wide", wide_counts, "true", "0", order)
        within = " AND ".join(
            f"block {side} (SELECT (block + {further}) << {WIDE - NARROW} FROM wide_found)"
            for side, further in ((">=", 0), ("<", 1))
        )
        narrow = _block_at("narrow", narrow_counts, within, "(SELECT before FROM wide_found)", order)
        inside = self.rows.filter(pk__gte=_get_id_bound(0), pk__lt=_get_id_bound(1)).values("pk")
        onwards = inside.order_by("-pk" if descending else "pk")
        walk, params = compile_queryset(onwards)
        walk_back, params_back = compile_queryset(onwards.reverse())
        return RawSQL(
            f"(WITH {wide}, {narrow} SELECT CASE WHEN %s - before < upto - %s"
            f" THEN ({walk} OFFSET %s - before LIMIT 1) ELSE ({walk_back} OFFSET upto - 1 - %s LIMIT 1) END"
            " FROM narrow_found)",
            [*wide_params, offset, *narrow_params, *[offset] * 3, *params, offset, *params_back, offset],
        )


# Those who delete counts do so one after the other, or one would not see what another is just writing.
_REWRITE = f"pg_advisory_xact_lock({_LOCK}, {_REWRITING})"


def _block_at(name: str, counts: str, within: str, before: str, order: str) -> str:
    """Common table expressions: `{name}_found` is the block in which an offset falls.

    It has how many rows are `before` it, and how many `upto` its end.
    """
    # PostgreSQL's sum of bigint is numeric, which is slow to add up, and to a frame of RANGE belong all of equal rank,
    # which would be looked for behind each block.
    return f"""
        {name} AS (
            SELECT block, sum(rows)::bigint AS here, {before} + (sum(sum(rows)::bigint) OVER so_far)::bigint AS upto
            FROM ({counts}) AS counts WHERE {within} GROUP BY block
            WINDOW so_far AS (ORDER BY block {order} ROWS UNBOUNDED PRECEDING)
        ),
        {name}_found AS (
            SELECT block, upto - here AS before, upto FROM {name} WHERE upto > %s ORDER BY block {order} LIMIT 1
        )
    """


def _get_id_bound(further: int) -> RawSQL:
    """The lowest id of the narrow block that was found, or of the one that many blocks further."""
    return RawSQL(f"((narrow_found.block + {further}) << {NARROW})", [])


def track_counts(*columns: str, present: str = "true") -> Callable[[AnyModel], AnyModel]:
    """Declares that a model's rows are counted, apart by the values of `columns`; see Counts."""
    return track("counts", lambda model: Counts(model, columns, present, get_owner_column(model)))


def get_counts(model: type[models.Model]) -> Counts | None:
    return getattr(model, "counts", None)


def get_all_counts() -> list[Counts]:
    return [counts for model in apps.get_models() if (counts := get_counts(model))]


def fetch_totals() -> dict[type[models.Model], list[tuple[dict[str, str], int]]]:
    """How many rows there are of every model that is counted: the values that they are counted apart by, and a number.

    One statement, of one snapshot.
    """
    found: dict[str, list[tuple[dict[str, str], int]]] = {}
    sources = ["SELECT relation, part, rows FROM config_rowcount WHERE bits = %s"]
    sources += [
        f"SELECT '{counts.table}', part, -1 FROM ({counts.get_hidden()}) AS hidden"
        for counts in get_all_counts()
        if counts.owner
    ]
    totals = fetch_rows(
        f"SELECT relation, part::text, sum(rows)::bigint FROM ({' UNION ALL '.join(sources)}) AS counts"
        " GROUP BY relation, part ORDER BY part",
        [WIDE],
    )
    for relation, part, rows in totals:
        found.setdefault(relation, []).append((json.loads(part), rows))
    return {counts.model: found.get(counts.table, []) for counts in get_all_counts()}


@transaction.atomic
def compact() -> None:
    """Adds the counts of all slots that no transaction holds into the first one, so that sums stay short."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_REWRITE}")
        cursor.execute(
            "SELECT slot FROM (SELECT 0 AS slot UNION SELECT slot FROM config_rowcount ORDER BY slot) AS slots"
            " WHERE pg_try_advisory_xact_lock(%s, slot)",
            [_LOCK],
        )
        free = [slot for (slot,) in cursor.fetchall()]
        if 0 in free:
            cursor.execute(_COMPACT, [[slot for slot in free if slot]])
