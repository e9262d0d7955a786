"""What `manage.py doctor` looks at: each check says what is right, what is wrong, and what to do.

A check looks, and changes nothing. None takes long: what would is looked at by samples, or given up after some seconds.
"""

import math
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.db import Error, OperationalError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from psycopg.errors import LockNotAvailable, QueryCanceled

from config.local.cluster import get_default_cluster
from config.management.expiry import get_expired_rows
from config.management.migrations import MIN_VERSION
from config.management.pooler import LOSES_STATEMENTS, keeps_prepared_statements
from config.postgresql import row_counts
from users.models import User

# Of a random one, estimate_bits finds far more, and of a phrase that is repeated less.
MIN_BITS = {"SECRET_KEY": 160, "JWT_SIGNING_KEY": 160, "METRICS_TOKEN": 40}
# Of each table that is counted; a block is of 4,096 ids.
SAMPLED_BLOCKS = 20
# A token is valid for minutes, and the order of rows is that of the database's clock.
MAX_CLOCK_SECONDS = 2.0
MIN_FREE_BYTES = 5 * 2**30
CONNECTIONS_OF_A_WORKER = 7
# For readers of metrics, backups and commands.
SPARE_CONNECTIONS = 10
PURGE_IS_LATE = timedelta(days=2)
STATEMENT_TIMEOUT = "5s"
MAX_SECONDS_OF_REDIS = 2.0
# Settings of PostgreSQL without which rows are lost or counts go wrong, with the values that do; the first is best.
_NEEDED = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
    "autovacuum": ("on",),
    "session_replication_role": ("origin",),
    "default_transaction_read_only": ("off",),
    "transaction_isolation": ("read committed",),
}
# What a connection of the service asks for; a pooler may drop it.
_TIMEOUTS = ("lock_timeout", "idle_in_transaction_session_timeout")


class Verdict(StrEnum):
    RIGHT = "right"
    WRONG = "WRONG"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """What a check found.

    Attributes:
        subject: what was looked at.
        told: what is the case; where it is wrong also what to do.
    """

    verdict: Verdict
    subject: str
    told: str

    def __str__(self) -> str:
        return f"{self.verdict:<7} {self.subject}: {self.told}"


def diagnose() -> Iterator[Finding]:
    """Everything that was found, in the order in which it is best mended."""
    for check in (check_settings, check_secrets, check_proxies, check_quotas):
        yield from check()
    try:
        connection.ensure_connection()
    except Error as error:
        yield _wrong("database", f"{_first_line(error)}; see DATABASE_URL, and whether PostgreSQL runs")
        return
    for subject, look in _DATABASE_CHECKS.items():
        yield from _look_safely(subject, look)


def _look_safely(subject: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'")
            yield from look()
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled | LockNotAvailable):
            yield Finding(Verdict.UNKNOWN, subject, f"not looked at to the end within {STATEMENT_TIMEOUT}")
        else:
            yield _wrong(subject, f"{_first_line(error)}; see the log of PostgreSQL")
    except Error as error:
        yield _wrong(subject, f"{_first_line(error)}; run manage.py migrate")


def _right(subject: str, told: str) -> Finding:
    return Finding(Verdict.RIGHT, subject, told)


def _wrong(subject: str, told: str) -> Finding:
    return Finding(Verdict.WRONG, subject, told)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _fetch(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


# --- What stands in the environment


def check_settings() -> Iterator[Finding]:
    """The system checks of Django and of the service; on a machine of one's own without those of a deployment."""
    found = checks.run_checks(include_deployment_checks=not settings.LOCAL)
    told = [each for each in found if each.level >= checks.WARNING and not each.is_silenced()]
    for message in told:
        hint = f" {message.hint}" if message.hint else ""
        yield _wrong("settings", " ".join(f"{message.msg}{hint} ({message.id})".split()))
    if not told:
        yield _right("settings", "the system checks find nothing")


def check_secrets() -> Iterator[Finding]:
    """Whether secrets can be guessed, and none has two uses. None is printed, nor a part of one."""
    keys = {
        "SECRET_KEY": settings.SECRET_KEY,
        "JWT_SIGNING_KEY": settings.JWT_SIGNING_KEY,
        **({"METRICS_TOKEN": settings.METRICS_TOKEN} if settings.METRICS_TOKEN else {}),
    }
    earlier = [*settings.SECRET_KEY_FALLBACKS, *settings.JWT_SIGNING_KEY_FALLBACKS]
    faults = [
        f"{name} may be guessed, with about {bits:.0f} bits; make a random one: openssl rand -base64 48"
        for name, key in keys.items()
        if (bits := estimate_bits(key)) < MIN_BITS[name]
    ]
    if len(set(keys.values())) < len(keys):
        faults.append("two of them are the same; give each its own")
    if set(earlier) & set(keys.values()):
        faults.append("a fallback is a present key; take it out of the _FALLBACKS")
    for fault in faults:
        yield _wrong("secrets", fault)
    if not faults:
        more = f"; {len(earlier)} earlier keys are accepted" if earlier else ""
        yield _right("secrets", f"{', '.join(keys)} are random and differ{more}")


def estimate_bits(secret: str) -> float:
    """How much there is to guess at most: by the frequency of its characters, and by what repeats in it."""
    if not secret:
        return 0.0
    counts = Counter(secret).values()
    by_frequency = sum(count * math.log2(len(secret) / count) for count in counts)
    header_bytes = len(zlib.compress(b"", 9))
    by_repetition = 8.0 * (len(zlib.compress(secret.encode(), 9)) - header_bytes)
    return min(by_frequency, by_repetition)


def check_proxies() -> Iterator[Finding]:
    url, proxies = urlsplit(settings.PUBLIC_URL), settings.TRUSTED_PROXIES
    if settings.LOCAL:
        yield _right("proxies", f"a machine of one's own, at {settings.PUBLIC_URL}")
    elif url.scheme != "https":
        yield _wrong("proxies", "PUBLIC_URL is http: credentials are sent in clear; put a proxy with TLS in front")
    elif not proxies:
        yield _wrong(
            "proxies",
            "PUBLIC_URL is https, which a proxy ends, but TRUSTED_PROXIES is 0: all clients have one address, and share"
            " its limits; set it to the number of proxies",
        )
    else:
        yield _right("proxies", f"{settings.PUBLIC_URL}, behind {proxies}")


# --- What Redis says


def check_quotas() -> Iterator[Finding]:
    """Whether Redis, where there is one, would count: the script runs without a key."""
    if not settings.QUOTA_URL:
        yield _right("quotas", "the database counts the requests")
        return
    # Whoever has none shall not load it.
    from redis import Redis
    from redis.exceptions import RedisError

    from config.api.limits.redis_counters import INCREMENT, MAX_SECONDS_OF_AN_ANSWER

    timeouts = {"socket_timeout": MAX_SECONDS_OF_REDIS, "socket_connect_timeout": MAX_SECONDS_OF_REDIS}
    try:
        with Redis.from_url(settings.QUOTA_URL, **timeouts) as redis:
            facts = redis.info()
            seconds = min(_measure(lambda: redis.eval(INCREMENT, 0)) for _ in range(5))
    except RedisError as error:
        yield _wrong("quotas", f"{_first_line(error)}; see QUOTA_URL, and whether Redis runs")
        return
    faults = []
    # A Redis of a provider may tell less.
    if facts.get("role", "master") != "master":
        faults.append("Redis is a replica, which takes no counts; let QUOTA_URL lead to the primary")
    if facts.get("evicted_keys"):
        faults.append("Redis has evicted keys, and may forget counts; give it memory of its own")
    if seconds > MAX_SECONDS_OF_AN_ANSWER / 2:
        faults.append(f"Redis took {1000 * seconds:.0f} ms, and is not waited for beyond 50; put it nearer")
    for fault in faults:
        yield _wrong("quotas", fault)
    if not faults:
        yield _right(
            "quotas", f"Redis {facts.get('redis_version', '')} counts the requests, within {1000 * seconds:.1f} ms"
        )


def _measure(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# --- What the database says


def check_version() -> Iterator[Finding]:
    version = int(connection.pg_version) // 10_000  # type: ignore[attr-defined]
    if version < MIN_VERSION:
        yield _wrong("database", f"PostgreSQL {version}; move to {MIN_VERSION} or later")
    else:
        yield _right("database", f"PostgreSQL {version} answers")
    if _fetch("SELECT pg_is_in_recovery()")[0][0]:
        yield _wrong("database", "a standby, which takes no writes; let DATABASE_URL lead to the primary")


def check_pooler() -> Iterator[Finding]:
    if settings.DATABASE_POOLER == "none":
        yield _right("pooler", "none")
    elif keeps_prepared_statements():
        yield _right("pooler", f"{settings.DATABASE_POOLER}, which keeps prepared statements")
    else:
        yield _wrong("pooler", LOSES_STATEMENTS)


def check_encoding() -> Iterator[Finding]:
    encoding, provider, outdated = _fetch(
        "SELECT pg_encoding_to_char(encoding), datlocprovider,"
        " datcollversion IS DISTINCT FROM pg_database_collation_actual_version(oid)"
        " FROM pg_database WHERE datname = current_database()"
    )[0]
    provider = {"b": "builtin", "c": "libc", "i": "icu"}.get(provider, provider)
    if encoding != "UTF8":
        yield _wrong("encoding", f"{encoding}; create the database anew with ENCODING 'UTF8', and load a dump")
    elif outdated:
        yield _wrong(
            "encoding",
            f"the collations of {provider} changed under the indexes; REINDEX DATABASE, then"
            " ALTER DATABASE … REFRESH COLLATION VERSION",
        )
    else:
        yield _right("encoding", f"{encoding}, collations of {provider}")


def check_server_settings() -> Iterator[Finding]:
    names = [*_NEEDED, *_TIMEOUTS, "max_connections", "superuser_reserved_connections"]
    found = dict(_fetch("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", names))
    faults = [
        f"{name} is {found[name]}; set it to {values[0]}"
        for name, values in _NEEDED.items()
        if found[name] not in values
    ]
    faults += [f"{name} is 0: a pooler drops what connections ask for" for name in _TIMEOUTS if found[name] == "0"]
    wanted = CONNECTIONS_OF_A_WORKER * settings.WORKERS + SPARE_CONNECTIONS
    available = int(found["max_connections"]) - int(found["superuser_reserved_connections"])
    if available < wanted:
        faults.append(f"max_connections leaves {available}, and {settings.WORKERS} workers need {wanted}; raise it")
    for fault in faults:
        yield _wrong("server", fault)
    if not faults:
        yield _right("server", f"durable, writable, {available} connections for {wanted}")


def check_migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    loader = executor.loader
    # From the beginning: a plan from the present state does not see one that is missing before others that are applied.
    plan = executor.migration_plan(loader.graph.leaf_nodes(), clean_start=True)
    steps = [(step.app_label, step.name) for step, _ in plan]
    missing = [".".join(step) for step in steps if step not in loader.applied_migrations]
    unknown = [
        f"{app}.{name}"
        for app, name in sorted(set(loader.applied_migrations) - set(loader.disk_migrations))
        if app in loader.migrated_apps and not _is_replaced(loader, app, name)
    ]
    broken = _fetch("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid")
    if missing:
        yield _wrong("migrations", f"{len(missing)} are missing, {missing[0]} first; run manage.py migrate")
    if unknown:
        yield _wrong("migrations", f"{unknown[-1]} is of another release; run the newest one")
    for (index,) in broken:
        yield _wrong("migrations", f"the index {index} was not finished; REINDEX INDEX CONCURRENTLY {index}")
    if not (missing or unknown or broken):
        yield _right("migrations", f"all {len(loader.disk_migrations)} are applied")


def _is_replaced(loader: Any, app: str, name: str) -> bool:
    return any((app, name) in migration.replaces for migration in loader.disk_migrations.values())


def check_counts() -> Iterator[Finding]:
    """By samples; `recount --check` looks at every row."""
    disabled = _fetch(
        "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('D', 'R')"
    )
    for (table,) in disabled:
        yield _wrong("counts", f"triggers of {table} are off; ALTER TABLE {table} ENABLE TRIGGER USER, then recount")
    tables = row_counts.get_all_counts()
    different = [counts.table for counts in tables if counts.sample_differences(SAMPLED_BLOCKS)]
    for table in different:
        yield _wrong("counts", f"those of {table} are wrong; run manage.py recount")
    if not (different or disabled):
        yield _right(
            "counts", f"right in samples of {len(tables)} tables (manage.py recount --check looks at every row)"
        )


def check_clocks() -> Iterator[Finding]:
    asked = time.time()
    ((database,),) = _fetch("SELECT extract(epoch FROM clock_timestamp())::float8")
    answered = time.time()
    # What the way there and back may hide is not counted.
    difference = max(0.0, abs(database - (asked + answered) / 2) - (answered - asked) / 2)
    if difference > MAX_CLOCK_SECONDS:
        yield _wrong("clocks", f"{difference:.1f} s between this machine and the database; let both follow NTP")
    else:
        yield _right("clocks", f"less than {MAX_CLOCK_SECONDS:.0f} s between this machine and the database")


def check_disk() -> Iterator[Finding]:
    if not settings.EMBEDDED_DATABASE:
        yield Finding(Verdict.UNKNOWN, "disk", "that of the database cannot be seen from here; watch it there")
        return
    folder = get_default_cluster().folder
    free = shutil.disk_usage(folder).free
    told = f"{free / 2**30:.1f} GiB are free at {folder}"
    yield _right("disk", told) if free >= MIN_FREE_BYTES else _wrong("disk", f"{told}; make room, or move .data")


def check_purge() -> Iterator[Finding]:
    late = [name for name, rows in get_expired_rows(timezone.now() - PURGE_IS_LATE).items() if rows.exists()]
    if late:
        days = PURGE_IS_LATE.days
        yield _wrong("purge", f"{', '.join(late)} expired over {days} days ago are there; run manage.py purge daily")
    else:
        yield _right("purge", "nothing expired is left over")


def check_administrators() -> Iterator[Finding]:
    if User.objects.administrators().exists():
        yield _right("people", "there is an active administrator")
    else:
        yield _wrong("people", "no active administrator; manage.py create_user EMAIL --name N --role admin")


_DATABASE_CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "database": check_version,
    "pooler": check_pooler,
    "encoding": check_encoding,
    "server": check_server_settings,
    "migrations": check_migrations,
    "counts": check_counts,
    "clocks": check_clocks,
    "disk": check_disk,
    "purge": check_purge,
    "people": check_administrators,
}
