"""System checks for settings that are insecure or contradict each other."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from time import time
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DatabaseError, connection

from config.api.versions import versioning
from config.api.versions.table import midnight

NOTICE_BEFORE_SUNSET = timedelta(days=90)
# At most, including the process beside it: docs/scale.md#database-connections.
CONNECTIONS_OF_A_WORKER = 15
# For readers of metrics, backups and commands.
SPARE_CONNECTIONS = 10
MAX_CLOCK_SECONDS = 2.0


@register(Tags.security)
def check_oauth(**options: object) -> list[CheckMessage]:
    """Refuses what of the toolkit lets a bearer token log in without a password, or authenticate every page."""
    listed = [*settings.AUTHENTICATION_BACKENDS, *settings.MIDDLEWARE]
    wrong = [path for path in listed if path.startswith("oauth2_provider.")]
    return [Error(f"The settings must not list {path}.", id="config.E001") for path in wrong]


@register(Tags.compatibility)
def check_default_version(**options: object) -> list[CheckMessage]:
    """Warns 90 days before the sunset of the version of requests that name none."""
    version = versioning.get_default_version()
    if version.sunset is None or time() < midnight(version.sunset) - NOTICE_BEFORE_SUNSET.total_seconds():
        return []
    message = f"Version {version}, the default version, ends on {version.sunset}."
    return [checks.Warning(message, hint="Set DEFAULT_API_VERSION to a later version.", id="config.W001")]


@register(Tags.security, deploy=True)
def check_proxies(**options: object) -> list[CheckMessage]:
    """Warns of a proxy that the settings do not know of."""
    if settings.LOCAL:
        return []
    if not settings.PUBLIC_URL.startswith("https:"):
        hint = "Put a TLS proxy in front of the service."
        return [checks.Warning("PUBLIC_URL is http: credentials are sent unencrypted.", hint=hint, id="config.W003")]
    if not settings.TRUSTED_PROXIES:
        message = (
            "PUBLIC_URL is https, but TRUSTED_PROXIES is 0: all clients behind the proxy share its address and quota."
        )
        return [checks.Warning(message, hint="Set TRUSTED_PROXIES to the number of proxies.", id="config.W004")]
    return []


@register(deploy=True)
def check_mail(**options: object) -> list[CheckMessage]:
    """Warns of an installation that sends no mail."""
    if settings.SENDS_MAIL:
        return []
    message = "EMAIL_URL is not set: password resets, email verification and invitations are disabled."
    return [checks.Warning(message, hint="Set EMAIL_URL and run manage.py deliver.", id="config.W011")]


# --- What the service depends on, for `manage.py doctor` and `manage.py check --database default`


@register(Tags.database)
def check_database(databases: Sequence[str] | None = None, **options: object) -> list[CheckMessage]:
    """Looks for what a PostgreSQL that answers has too little of, or a pooler keeps back."""
    if not databases:
        return []
    sent = time()
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LOOK)
            available, clock, *timeouts = cursor.fetchone()
    except DatabaseError as error:
        hint = "Check DATABASE_URL, and that PostgreSQL is running."
        return [Error(str(error).partition("\n")[0], hint=hint, id="config.E007")]
    # A difference within the round trip does not count.
    return [*_find_faults(available, timeouts, max(sent - clock, clock - time()))]


# A pooler may drop the time-outs that a connection asks for.
_LOOK = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    extract(epoch FROM clock_timestamp())::float8,
    current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')
"""


def _find_faults(available: int, timeouts: Sequence[str], seconds_apart: float) -> Iterator[CheckMessage]:
    needed = CONNECTIONS_OF_A_WORKER * settings.WORKERS + SPARE_CONNECTIONS
    if available < needed:
        message = f"max_connections allows {available} connections, but {settings.WORKERS} workers need {needed}."
        yield checks.Warning(message, hint="Raise max_connections or lower WORKERS.", id="config.W005")
    if "0" in timeouts:
        message = "Lock or idle transaction time-outs are not in effect: a pooler drops these settings."
        hint = "Set DATABASE_MIGRATION_URL to the database behind the pooler."
        yield checks.Warning(message, hint=hint, id="config.W006")
    # The order of rows is that of the database's clock, and a token is valid for minutes.
    if seconds_apart > MAX_CLOCK_SECONDS:
        message = f"The clocks of this machine and of the database differ by {seconds_apart:.1f} s."
        yield checks.Warning(message, hint="Synchronize both with NTP.", id="config.W007")


@register(Tags.database, deploy=True)
def check_administrators(databases: Sequence[str] | None = None, **options: object) -> list[CheckMessage]:
    """Looks whether somebody can sign in to the admin."""
    users: Any = get_user_model()._default_manager
    try:
        if not databases or users.administrators().exists():
            return []
    except DatabaseError:
        # It is unavailable, which `check_database` reports, or has no tables yet.
        return []
    hint = "Create one: manage.py create_user EMAIL --name NAME --role admin."
    return [checks.Warning("There is no active administrator.", hint=hint, id="config.W010")]


@register(Tags.database)
def check_redis(databases: Sequence[str] | None = None, **options: object) -> list[CheckMessage]:
    """Looks whether a Redis would count: it answers, is no replica, and forgets nothing."""
    if not databases or not settings.QUOTA_URL:
        return []
    # An installation without Redis does not load its client.
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        with Redis.from_url(settings.QUOTA_URL, socket_timeout=2, socket_connect_timeout=2) as redis:
            facts = redis.info()
    except RedisError as error:
        return [Error(str(error), hint="Check QUOTA_URL, and that Redis is running.", id="config.E008")]
    # A Redis of a provider may tell less.
    if facts.get("role", "master") != "master":
        hint = "Point QUOTA_URL to the primary."
        return [Error("The Redis of QUOTA_URL is a replica, which accepts no writes.", hint=hint, id="config.E009")]
    if facts.get("evicted_keys"):
        hint = "Use a Redis of its own for the quotas, with enough memory."
        return [checks.Warning("Redis has evicted keys: counts may be lost.", hint=hint, id="config.W008")]
    return []
