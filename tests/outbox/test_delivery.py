"""What becomes of the entries of the outbox."""

from __future__ import annotations

import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.utils import timezone

from config.models import OutboxEntry
from config.outbox import deliver
from tests.conftest import connect_elsewhere, end_connection, own_session
from tests.users.mail import ask_api, read_links, statuses


@pytest.fixture
def ann(make_user: Any) -> Any:
    return make_user(email="ann@example.com", password="four plain words here")


def test_message_is_plain_text_and_html_and_has_the_name_of_its_entry(ann, settings):
    ask_api(ann.email)
    entry = OutboxEntry.objects.get()
    (link,) = read_links()
    (message,) = mail.outbox
    assert message.from_email == settings.DEFAULT_FROM_EMAIL == "no-reply@api.example.com"
    assert message.extra_headers["Message-ID"] == f"<outbox-{entry.pk}@api.example.com>"
    (page, kind), *_ = message.alternatives
    assert (kind, f'href="https://api.example.com{link}"' in page) == ("text/html", True)
    token = link.rpartition("/")[2]
    assert token not in str(OutboxEntry.objects.values())
    assert (entry.user_id, [*entry.parameters]) == (ann.pk, ["state"])


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ConnectionRefusedError("ann@example.com"), "pending", "ConnectionRefusedError"),
        (smtplib.SMTPAuthenticationError(535, b"no"), "pending", "SMTPAuthenticationError 535"),
        (smtplib.SMTPRecipientsRefused({"ann@example.com": (450, b"later")}), "pending", "SMTPRecipientsRefused"),
        (smtplib.SMTPRecipientsRefused({"ann@example.com": (550, b"nobody")}), "failed", "SMTP [550]"),
    ],
)
def test_failure_is_tried_again_unless_there_is_no_such_mailbox(ann, monkeypatch, error, status, told):
    def fail(*_: object) -> None:
        raise error

    ask_api(ann.email)
    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
    waits = []
    for attempt in (1, 2):
        OutboxEntry.objects.filter(status="pending").update(due_at=timezone.now())
        assert deliver() == (1 if status == "pending" or attempt == 1 else 0)
        entry = OutboxEntry.objects.get()
        waits.append((entry.due_at - timezone.now()).total_seconds())
        assert deliver() == 0
    assert (entry.status, entry.error) == (status, told)
    if status == "pending":
        assert waits == [pytest.approx(10, abs=2), pytest.approx(20, abs=2)]
        monkeypatch.undo()
        OutboxEntry.objects.update(due_at=timezone.now())
        assert len(read_links()) == 1
    assert not mail.outbox or statuses() == ["sent"]


@pytest.mark.parametrize("age", [timedelta(minutes=29), timedelta(minutes=30)])
def test_message_whose_link_has_expired_is_not_sent(ann, age):
    ask_api(ann.email)
    OutboxEntry.objects.update(created_at=timezone.now() - age)
    assert (len(read_links()), statuses()) == ((1, ["sent"]) if age < timedelta(minutes=30) else (0, ["dropped"]))


def test_entry_of_another_release_waits(ann):
    OutboxEntry.objects.create(kind="unknown", user=ann)
    ask_api(ann.email)
    assert (deliver(), statuses()) == (1, ["pending", "sent"])


@pytest.mark.django_db(transaction=True)
@own_session
def test_process_that_dies_while_it_sends_leaves_the_entry_to_others(ann, monkeypatch):
    ask_api(ann.email)
    seen: list[list[Any]] = []

    def die(self: Any, messages: Any) -> int:
        with connect_elsewhere() as other:
            sql = "SELECT id FROM config_outboxentry FOR UPDATE SKIP LOCKED"
            seen.append(other.execute(sql).fetchall())
        end_connection()
        return len(messages)

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", die)
        with pytest.raises(Exception, match="connection"):
            deliver()
    assert seen == [[]]
    assert statuses() == ["pending"]
    first = read_links()
    assert (len(first), statuses()) == (1, ["sent"])


@pytest.mark.django_db(transaction=True)
def test_command_sends_what_is_due_and_a_file_stands_for_mail_on_a_machine_of_ones_own(
    ann, settings, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr("config.local.mail.DATA_FOLDER", tmp_path)
    settings.EMAIL_BACKEND = "config.local.mail.EmailBackend"
    ask_api(ann.email)
    call_command("deliver", "--once")
    (file,) = (tmp_path / "mail").iterdir()
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("{")]
    assert told[0] == f"Mail: {file}"
    assert told[1].startswith("Link: https://api.example.com/session/reset/password_reset-")
    assert told[1].removeprefix("Link: ") in file.read_text()
    assert (file.parent.stat().st_mode & 0o777, statuses()) == (0o700, ["sent"])
