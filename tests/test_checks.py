"""The system checks of a deployment: what is wrong with proxies, PostgreSQL and Redis is told."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from redis import Redis

from config import checks
from config.management.commands import doctor
from config.models import OutboxEntry
from tests.api.test_failures import database_away
from tests.conftest import own_session
from tests.service import CHECKOUT

pytestmark = pytest.mark.django_db(transaction=True)


def find(**options: Any) -> dict[str, str]:
    """What the service's own checks found, by id."""
    found = run_checks(**options)
    return {message.id: message.msg for message in found if message.id and message.id.startswith("config.")}


def look() -> dict[str, str]:
    return find(databases=["default"])


@pytest.mark.parametrize(("role", "status"), [("user", "active"), ("admin", "inactive"), ("admin", "active")])
def test_service_without_an_active_administrator_is_told(make_user, role, status):
    make_user(role, status=status)
    found = find(databases=["default"], include_deployment_checks=True)
    assert ("config.W010" in found) == ((role, status) != ("admin", "active"))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"TRUSTED_PROXIES": 0}, {"config.W004"}),
        ({"TRUSTED_PROXIES": 0, "LOCAL": True}, set()),
        ({"PUBLIC_URL": "http://api.example.com"}, {"config.W003"}),
        ({"TRUSTED_PROXIES": 1}, set()),
    ],
)
def test_proxy_that_the_settings_do_not_know_of_is_told(settings, changed, told):
    for name, value in changed.items():
        setattr(settings, name, value)
    assert set(find(include_deployment_checks=True)) == told
    assert find() == {}


@pytest.fixture(autouse=True)
def public_url(monkeypatch):
    """What answers at PUBLIC_URL: the headers, or an error."""
    found = {"answer": {"API-Version": "1"}}

    @contextmanager
    def urlopen(url, timeout):
        if isinstance(found["answer"], OSError):
            raise found["answer"]
        yield SimpleNamespace(headers=found["answer"])

    monkeypatch.setattr(doctor, "urlopen", urlopen)
    return found


@pytest.mark.parametrize("url", ["smtp://localhost:1", "smtp://user:the-password@localhost:1"])
def test_mail_server_that_does_not_answer_is_told(settings, capsys, make_user, url):
    make_user("admin")
    settings.TRUSTED_PROXIES, settings.EMAIL_URL, settings.EMAIL_HOST, settings.EMAIL_PORT = 1, url, "localhost", 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with pytest.raises(CommandError, match="1 thing is wrong"):
        call_command("doctor")
    assert capsys.readouterr().out.startswith(
        "The mail server does not take mail: [Errno 111] Connection refused. Look "
    )


def test_each_check_has_an_id_of_its_own():
    files = [CHECKOUT / "config/checks.py", *(CHECKOUT / "config/management/commands").glob("*.py")]
    found = [name for file in files for name in re.findall(r'id="(config\.\w+)"', file.read_text())]
    assert len(found) == len(set(found)) > 10


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, "Another service responds at "),
        (OSError("no certificate"), "respond: no certificate. Check DNS"),
        (HTTPError("", 503, "Service Unavailable", Message(), None), "503: Service Unavailable. Start the service"),
    ],
)
def test_public_url_that_does_not_lead_here_is_told(settings, capsys, public_url, make_user, *, answer, told):
    make_user("admin")
    settings.TRUSTED_PROXIES, public_url["answer"] = 1, answer
    with pytest.raises(CommandError, match="1 thing is wrong"):
        call_command("doctor")
    assert told in capsys.readouterr().out


def test_messages_that_nobody_sends_are_told(settings, capsys, make_user):
    user = make_user("admin")
    settings.TRUSTED_PROXIES = 1
    now = timezone.now()
    OutboxEntry.objects.create(kind="password_reset", user=user, due_at=now - timedelta(minutes=4))
    call_command("doctor")
    OutboxEntry.objects.create(kind="password_reset", user=user, due_at=now - timedelta(minutes=6))
    with pytest.raises(CommandError, match="1 thing is wrong"):
        call_command("doctor")
    assert "Start manage.py deliver (users-service-deliver)" in capsys.readouterr().out


def test_database_that_is_right_is_not_mentioned(settings, capsys, make_user):
    make_user("admin")
    settings.TRUSTED_PROXIES = 1
    assert look() == {}
    call_command("doctor")
    assert (
        capsys.readouterr().out
        == f"{settings.PUBLIC_URL} responds, and so does everything it needs.\nNo problems found.\n"
    )


def test_connections_that_do_not_suffice_are_told(settings):
    settings.WORKERS = 250
    assert "250 workers need 3760" in look()["config.W005"]


def test_doctor_prints_a_line_for_each_thing_that_is_wrong_with_what_to_do(settings, capsys, make_user):
    make_user("admin")
    settings.WORKERS, settings.TRUSTED_PROXIES = 250, 0
    with pytest.raises(CommandError, match="2 things are wrong"):
        call_command("doctor")
    told = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" (")[2] for line in told] == ["config.W005)", "config.W004)"]
    assert all(
        hint in line for hint, line in zip(["Raise max_connections", "Set TRUSTED_PROXIES to"], told, strict=True)
    )


@own_session
def test_timeouts_that_are_kept_back_are_told():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
    try:
        assert set(look()) == {"config.W006"}
    finally:
        connection.close()


@pytest.mark.parametrize("seconds", [-60, 60])
def test_clock_that_differs_is_told(monkeypatch, seconds):
    monkeypatch.setattr(checks, "time", lambda: time.time() + seconds)
    assert "differ by 60.0 s" in look()["config.W007"] or "differ by 59." in look()["config.W007"]


def test_database_that_is_away_is_told():
    with database_away():
        assert set(look()) == {"config.E007"}


def test_redis_that_counts_is_not_mentioned(settings, redis):
    settings.QUOTA_URL = redis.url
    redis.client.config_resetstat()
    assert look() == {}


def test_redis_that_is_away_is_told_without_its_password(settings, redis):
    settings.QUOTA_URL = redis.url
    with redis.away():
        found = look()
    assert set(found) == {"config.E008"}
    assert redis.url.split("@")[0].rpartition(":")[2] not in found["config.E008"]


@pytest.mark.parametrize(
    ("field", "value", "told"), [("role", "slave", "config.E009"), ("evicted_keys", 1, "config.W008")]
)
def test_redis_that_loses_counts_is_told(settings, redis, monkeypatch, *, field, value, told):
    settings.QUOTA_URL = redis.url
    facts = redis.client.info() | {field: value}
    monkeypatch.setattr(Redis, "info", lambda self: facts)
    assert set(look()) == {told}
