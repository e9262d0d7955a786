"""Events of row changes, written by triggers in the transaction of the change: never one without the other.

The order of events never contradicts that of a row's changes, and a reader that continues from one misses none that is
committed later. An event's position is at least the id of its transaction. It is taken from a snapshot of the trigger,
when the row is locked: so it is not below that of an earlier change of the row, though the transaction may have got its
id before that change, and waited for the lock. What is read is below the horizon, the oldest id under way: every
transaction below that has ended.

The actor comes with the statement that writes (`ACTOR`, `get_rows_actors`), and never with a connection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pgtrigger
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction

from config.postgresql.compiling import fetch_rows
from config.postgresql.transactions import run_briefly
from config.postgresql.triggers import AnyModel, after_statement, track
from config.postgresql.visibility import build_goes_with_removed

TABLE, EPOCHS = "config_event", "config_eventepoch"
HORIZON = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_POSITION = "greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)"
# For a transaction: who acts in it, as a JSON array of the id of its user, the kind of its credential, and the id of
# the request.
ACTOR = "events.actor"
_COLUMNS = "position, type, resource_id, user_id, changed, actor_id, credential, request_id"
# Identifies the history of the events: a restored dump has another one, a standby that takes over the same.
ORIGIN = (
    "(SELECT system_identifier FROM pg_control_system())"
    " || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" || '/' || '{TABLE}'::regclass::oid"
)
PARTITION = timedelta(days=7)
_PARTITIONS_AHEAD = 5


@dataclass(frozen=True, slots=True)
class Tracked:
    """Which changes of a model's rows are events.

    Attributes:
        name: of the resource, with which the types of its events begin.
        columns: those whose changes are events.
        is_removed: whether the removal of a row is an event.
        tombstone: the column that is set when a row is removed; None where rows are deleted.
    """

    model: type[models.Model]
    name: str
    columns: Sequence[str] = ()
    is_removed: bool = False
    tombstone: str | None = None

    @property
    def owner(self) -> str:
        """The column of the user whose row it is."""
        return "id" if self.tombstone else "user_id"

    def triggers(self) -> list[pgtrigger.Trigger]:
        declare = [
            ("actor", f"jsonb := nullif(current_setting('{ACTOR}', true), '')"),
            ("actors", f"jsonb := nullif(current_setting('{get_rows_actors(self.model)}', true), '')"),
        ]
        created = self._write(f"'{self.name}.created'", "arrived")
        triggers = [after_statement("tell_new_rows", pgtrigger.Insert, created, new="arrived", declare=declare)]
        if self.is_removed and not self.tombstone:
            goes = build_goes_with_removed(self.model, "gone")
            removed = self._write(f"'{self.name}.removed'", f"(SELECT * FROM gone WHERE ({goes}) IS NOT TRUE) AS gone")
            triggers.append(after_statement("tell_gone_rows", pgtrigger.Delete, removed, old="gone", declare=declare))
        if self.columns:
            triggers.append(self._tell_changes(declare))
        return triggers

    def _tell_changes(self, declare: list[tuple[str, str]]) -> pgtrigger.Trigger:
        kind, changed, watched = f"'{self.name}.updated'", self._list_changed(), [*self.columns]
        if self.tombstone:
            is_removed = f"NEW.{self.tombstone} IS NOT NULL"
            kind = f"CASE WHEN {is_removed} THEN '{self.name}.removed' ELSE {kind} END"
            changed = f"CASE WHEN {is_removed} THEN NULL ELSE {changed} END"
            watched.append(self.tombstone)
        differs = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in watched)
        return pgtrigger.Trigger(
            name="tell_changed_rows",
            when=pgtrigger.After,
            operation=pgtrigger.UpdateOf(*watched),
            condition=pgtrigger.Condition(differs),
            declare=declare,
            func=self._write(kind, "(SELECT NEW.*) AS changed", changed),
        )

    def _write(self, kind: str, rows: str, changed: str = "NULL") -> str:
        return f"""
            INSERT INTO {TABLE} ({_COLUMNS})
            SELECT (SELECT {_POSITION}), {kind}, id, {self.owner}, {changed}, (by ->> 0)::bigint, by ->> 1, by ->> 2
            FROM {rows} CROSS JOIN LATERAL (SELECT coalesce(actors -> id::text, actor) AS by) AS who
            ORDER BY id;
            RETURN NULL;
        """

    def _list_changed(self) -> str:
        names = ", ".join(
            f"CASE WHEN OLD.{column} IS DISTINCT FROM NEW.{column} THEN '{column}' END" for column in self.columns
        )
        return f"array_remove(ARRAY[{names}], NULL)"


def get_rows_actors(model: type[models.Model]) -> str:
    """The parameter for a statement that adds rows of several callers: a JSON object of ACTOR by the id of the row."""
    return f"events.{model._meta.db_table}"


def track_events(name: str, *columns: str, **options: Any) -> Callable[[AnyModel], AnyModel]:
    """Declares that changes of a model's rows are events; see Tracked."""
    return track("tracked", lambda model: Tracked(model, name, columns, **options))


def get_tracked() -> list[Tracked]:
    return [tracked for model in apps.get_models() if (tracked := getattr(model, "tracked", None))]


# --- The switch, and epochs: a cursor leads on within one


def switch(**options: object) -> None:
    """Enables or disables the triggers, as EVENTS says. Deletes events that are no longer complete, with their epoch.

    Migrations end with this.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        ((is_missing,),) = fetch_rows("SELECT to_regclass(%s) IS NULL", [TABLE])
        if is_missing:
            return
        is_switched = _switch_triggers(cursor)
        ((has_epoch,),) = fetch_rows(f"SELECT EXISTS (SELECT FROM {EPOCHS} WHERE origin = {ORIGIN})")
        if is_switched or has_epoch != settings.EVENTS:
            cursor.execute(f"TRUNCATE {TABLE}, {EPOCHS}")
            if settings.EVENTS:
                cursor.execute(f"INSERT INTO {EPOCHS} (origin) VALUES ({ORIGIN})")
        if settings.EVENTS:
            create_partitions(cursor)


def _switch_triggers(cursor: Any) -> bool:
    """Enables or disables the triggers. Returns whether some were not so."""
    names = {trigger.get_pgid(each.model): each.model for each in get_tracked() for trigger in each.triggers()}
    find_wrong = "SELECT tgname FROM pg_trigger WHERE tgname = ANY(%s) AND (tgenabled = 'D') = %s"
    wrong = fetch_rows(find_wrong, [list(names), settings.EVENTS])
    for (name,) in wrong:
        action = "ENABLE" if settings.EVENTS else "DISABLE"
        cursor.execute(f"ALTER TABLE {names[name]._meta.db_table} {action} TRIGGER {name}")
    return bool(wrong)


# --- Partitions


def create_partitions(cursor: Any) -> None:
    """Makes the partitions of this week and of those that follow. The default one takes the rows of a week without."""
    now = datetime.now(UTC)
    monday = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())
    for start in (monday + PARTITION * number for number in range(_PARTITIONS_AHEAD)):
        name, end = f"{TABLE}_{start:%Y%m%d}", start + PARTITION
        cursor.execute(
            f"SELECT to_regclass(%s) IS NULL AND NOT EXISTS (SELECT FROM {TABLE}_default"
            " WHERE created_at >= %s AND created_at < %s)",
            [name, start, end],
        )
        if cursor.fetchone()[0]:
            cursor.execute(f"CREATE TABLE {name} PARTITION OF {TABLE} FOR VALUES FROM ('{start}') TO ('{end}')")


def purge(now: datetime, *, dry_run: bool = False) -> int:
    """Drops what partitions have expired as a whole, and makes those to come. Returns how many events there were."""
    before = now - timedelta(days=settings.EVENT_RETENTION_DAYS)
    expired = {name: f"SELECT position, id FROM {name}" for name in _find_partitions(before)}
    late = f"SELECT position, id FROM {TABLE}_default WHERE created_at < '{before}'"
    ((count,),) = fetch_rows(f"SELECT count(*) FROM ({' UNION ALL '.join([*expired.values(), late])}) AS expired")
    if not dry_run:
        for name, gone in expired.items():
            _write_briefly(gone, f"DROP TABLE {name}")
        _write_briefly(late, f"DELETE FROM {TABLE}_default WHERE created_at < '{before}'")
        run_briefly(create_partitions)
    return int(count)


def _write_briefly(gone: str, statement: str) -> None:
    """Removes events, and records up to which one, so that an earlier cursor is refused."""

    def write(cursor: Any) -> None:
        cursor.execute(
            f"UPDATE {EPOCHS} SET dropped_position = last.position, dropped_id = last.id"
            f" FROM ({gone} ORDER BY position DESC, id DESC LIMIT 1) AS last"
            " WHERE (last.position, last.id) > (dropped_position, dropped_id)"
        )
        cursor.execute(statement)

    run_briefly(write)


def _find_partitions(before: datetime) -> list[str]:
    """The partitions that ended before a time, oldest first."""
    found = fetch_rows("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [TABLE])
    names = sorted(name for (name,) in found if name != f"{TABLE}_default")
    return [name for name in names if datetime.strptime(f"{name[-8:]}+0000", "%Y%m%d%z") + PARTITION <= before]
