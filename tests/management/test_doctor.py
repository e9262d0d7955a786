"""manage.py doctor: each thing that can be wrong is told, with what to do."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from redis import Redis

from config.management import diagnosis
from config.models import Counter, RowCount
from config.postgresql.row_counts import NARROW
from tests.api.test_failures import database_away

SUBJECTS = {"settings", "secrets", "proxies", "quotas", *diagnosis._DATABASE_CHECKS}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _healthy(settings, make_user, monkeypatch):
    """All that can be right in the environment of the tests, whose database is not durable."""
    settings.TRUSTED_PROXIES = 1
    monkeypatch.setattr(diagnosis, "_NEEDED", {"autovacuum": ("on",), "session_replication_role": ("origin",)})
    make_user("admin")


def examine() -> tuple[dict[str, set[str]], str]:
    """The verdicts by subject, and all that was printed."""
    output = StringIO()
    try:
        call_command("doctor", stdout=output)
    except CommandError as error:
        ended = f"{error.returncode}: {error}".partition(" thing")[0]
    else:
        ended = "0: 0"
    wrong = len(re.findall("^WRONG", output.getvalue(), re.MULTILINE))
    assert ended == f"{int(wrong > 0)}: {wrong}"
    lines = re.findall(r"^(right|WRONG|unknown) +(\w+): \S.+$", output.getvalue(), re.MULTILINE)
    assert len(lines) == len(output.getvalue().splitlines())
    verdicts: dict[str, set[str]] = {}
    for verdict, subject in lines:
        verdicts.setdefault(subject, set()).add(verdict)
    return verdicts, output.getvalue()


def get_wrong(found: dict[str, set[str]]) -> set[str]:
    return {subject for subject, verdicts in found.items() if "WRONG" in verdicts}


def test_what_is_right_is_said_of_each_subject_and_changes_nothing():
    found, text = examine()
    assert found == {subject: {"right"} for subject in SUBJECTS} | {"disk": {"unknown"}}, text
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("15s",)


SQL = {
    "counts": [
        ("ALTER TABLE posts_post DISABLE TRIGGER USER", "ALTER TABLE posts_post ENABLE TRIGGER USER"),
        ("UPDATE config_rowcount SET rows = rows + 1 WHERE relation = 'users_user'", ""),
    ],
    "migrations": [
        (
            "DELETE FROM django_migrations WHERE app = 'config' AND name = '0005_row_counts'",
            "0005_row_counts",
        ),
        ("INSERT INTO django_migrations (app, name, applied) VALUES ('users', '9999_later', now())", "9999_later"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'idempotency_records_of_user'::regclass",
            "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'idempotency_records_of_user'::regclass",
        ),
    ],
}


@pytest.mark.parametrize(
    ("subject", "damage", "repair"), [(subject, *pair) for subject, pairs in SQL.items() for pair in pairs]
)
def test_damage_to_the_database_is_wrong(subject, damage, repair):
    with connection.cursor() as cursor:
        cursor.execute(damage)
    try:
        found, text = examine()
    finally:
        _repair(repair)
    assert get_wrong(found) == {subject}, text


def _repair(repair: str) -> None:
    recorder = MigrationRecorder(connection)
    match repair:
        case "0005_row_counts":
            recorder.record_applied("config", repair)
        case "9999_later":
            recorder.record_unapplied("users", repair)
        case _ if repair:
            with connection.cursor() as cursor:
                cursor.execute(repair)


def test_counts_are_wrong_in_the_block_of_the_newest_row_alone(make_user):
    user = make_user()
    # Beyond every other row: the sequence of ids is that of all tests before this one.
    block = (user.pk >> NARROW) + 5
    type(user).objects.filter(pk=user.pk).update(id=(block << NARROW) + 7)
    RowCount.objects.filter(relation="users_user", bits=NARROW, block=block).delete()
    found, text = examine()
    assert get_wrong(found) == {"counts"}, text
    assert "users_user are wrong; run manage.py recount" in text


def test_expired_rows_that_no_purge_has_taken_are_wrong():
    Counter.objects.create(key="old", window=datetime(2026, 1, 1, tzinfo=UTC), count=1)
    found, text = examine()
    assert get_wrong(found) == {"purge"}
    assert "counters expired over 2 days ago are there; run manage.py purge" in text


@pytest.mark.parametrize(
    ("subject", "changed", "told"),
    [
        ("proxies", {"TRUSTED_PROXIES": 0}, "TRUSTED_PROXIES is 0"),
        ("proxies", {"PUBLIC_URL": "http://api.example.com"}, "in clear"),
        ("secrets", {"SECRET_KEY": "correct horse " * 10}, "openssl rand"),
        ("secrets", {"JWT_SIGNING_KEY": "abcdefghijklmnop" * 4}, "JWT_SIGNING_KEY may be guessed"),
        ("secrets", {"METRICS_TOKEN": "aaaaaaaabbbbbbbb"}, "METRICS_TOKEN may be guessed"),
        ("server", {"WORKERS": 250}, "raise it"),
        ("settings", {"AUTHENTICATION_BACKENDS": ["oauth2_provider.backends.OAuth2Backend"]}, "config.E001"),
        ("settings", {"SECURE_HSTS_SECONDS": 0}, "security.W004"),
    ],
)
def test_settings_that_are_wrong_are_told_with_what_to_do(settings, subject, changed, told):
    for name, value in changed.items():
        setattr(settings, name, value)
    found, text = examine()
    assert get_wrong(found) == {subject}, text
    assert told in text
    assert not any(str(value) in text for name, value in changed.items() if name.endswith(("KEY", "TOKEN")))


def test_key_that_is_its_own_fallback_is_wrong(settings):
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    assert get_wrong(examine()[0]) == {"secrets"}
    settings.SECRET_KEY_FALLBACKS = [secrets.token_urlsafe(48)]
    found, text = examine()
    assert get_wrong(found) == set()
    assert "1 earlier keys" in text


def test_database_that_would_lose_rows_is_wrong(monkeypatch):
    """That of the tests is such a one."""
    monkeypatch.undo()
    found, text = examine()
    assert "server" in get_wrong(found)
    assert "fsync is off; set it to on" in text


def test_no_administrator_is_wrong(django_user_model):
    django_user_model.objects.update(status="inactive")
    assert get_wrong(examine()[0]) == {"people"}


def test_clock_that_differs_is_wrong(monkeypatch):
    present = diagnosis.time.time
    monkeypatch.setattr(diagnosis.time, "time", lambda: present() + 60)
    found, text = examine()
    assert "WRONG" in found["clocks"]
    assert re.search(r"clocks: (59|60)\.\d s between", text)


def test_database_that_is_away_is_wrong_and_nothing_more_is_said_of_it():
    with database_away():
        found, text = examine()
    assert get_wrong(found) == {"database"}
    assert set(found) == {"settings", "secrets", "proxies", "quotas", "database"}, text


def test_redis_that_counts_is_right(settings, redis):
    settings.QUOTA_URL = redis.url
    redis.client.flushall()
    found, text = examine()
    assert found["quotas"] == {"right"}, text
    assert re.search(r"quotas: Redis \d[\d.]+ counts the requests, within \d+\.\d ms", text)
    assert not redis.client.keys()


def test_redis_that_is_away_is_wrong(settings, redis):
    settings.QUOTA_URL = redis.url
    with redis.away():
        found, text = examine()
    assert get_wrong(found) == {"quotas"}
    assert "Connection refused.; see QUOTA_URL, and whether Redis runs" in text


@pytest.mark.parametrize(("field", "value", "told"), [("role", "slave", "replica"), ("evicted_keys", 1, "forget")])
def test_redis_that_loses_counts_is_wrong(settings, redis, monkeypatch, *, field, value, told):
    settings.QUOTA_URL = redis.url
    facts = redis.client.info() | {field: value}
    monkeypatch.setattr(Redis, "info", lambda self: facts)
    found, text = examine()
    assert get_wrong(found) == {"quotas"}
    assert told in text


def test_redis_that_has_nothing_to_count_is_wrong(settings, redis):
    settings.QUOTA_URL, settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = redis.url, 0, 0
    found, text = examine()
    assert get_wrong(found) == {"settings"}
    assert "config.W002" in text


def test_check_that_takes_too_long_is_unknown_and_no_error(monkeypatch):
    monkeypatch.setitem(diagnosis._DATABASE_CHECKS, "purge", lambda: iter(diagnosis._fetch("SELECT pg_sleep(10)")))
    monkeypatch.setattr(diagnosis, "STATEMENT_TIMEOUT", "50ms")
    found, text = examine()
    assert found["purge"] == {"unknown"}, text
    assert get_wrong(found) == set()
