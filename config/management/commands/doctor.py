"""Says what is wrong with an installation."""

from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPException
from smtplib import SMTPException
from urllib.error import HTTPError
from urllib.request import urlopen

from django.conf import settings
from django.core import checks, mail
from django.core.management.base import CommandError
from django.db import DatabaseError
from django.db.models.functions import Now

from config.management.command import ServiceCommand
from config.models import OutboxEntry


class Command(ServiceCommand):
    help = (
        "Runs the system checks of an installation: of settings, proxies, PostgreSQL and Redis, makes a request to "
        "PUBLIC_URL, logs in at the mail server, and looks for messages that nobody sends. Prints a line for each "
        "thing that is wrong, with what to do. Changes nothing; the exit code is 1 when anything is wrong."
    )
    example = "manage.py doctor"
    # They are what it prints.
    requires_system_checks = []

    def handle(self, **options: object) -> None:
        found = checks.run_checks(include_deployment_checks=not settings.LOCAL, databases=["default"])
        if not settings.LOCAL:
            found += [*_check_public_url(), *_check_mail_server(), *_check_outbox()]
        wrong = [message for message in found if message.level >= checks.WARNING and not message.is_silenced()]
        for message in wrong:
            self.stdout.write(" ".join(f"{message.msg} {message.hint or ''} ({message.id})".split()))
        if wrong:
            raise CommandError(f"{len(wrong)} {'thing is' if len(wrong) == 1 else 'things are'} wrong.")
        if not settings.LOCAL:
            self.stdout.write(f"{settings.PUBLIC_URL} responds, and so does everything it needs.")
        self.stdout.write("No problems found.")


def _check_public_url() -> Sequence[checks.CheckMessage]:
    """Makes a request as a client does: by DNS, TLS and the proxy."""
    hint = "Check DNS, the certificate and the proxy. If this machine cannot reach its own name, try from another one."
    try:
        # The scheme is that of a validated setting.
        with urlopen(f"{settings.PUBLIC_URL}/versions", timeout=10) as answer:  # noqa: S310
            is_ours = "API-Version" in answer.headers
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError) and error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            hint = "Start the service, or read its log."
        return [checks.Warning(f"{settings.PUBLIC_URL} does not respond: {error}.", hint=hint, id="config.W012")]
    if is_ours:
        return []
    return [checks.Warning(f"Another service responds at {settings.PUBLIC_URL}.", hint=hint, id="config.W013")]


def _check_mail_server() -> Sequence[checks.CheckMessage]:
    """Logs in at the mail server, and sends nothing."""
    if not settings.EMAIL_URL:
        return []
    try:
        with mail.get_connection():
            return []
    except (OSError, SMTPException) as error:
        hint = "Look at EMAIL_URL. What is to be sent waits for it, and is tried again."
        return [checks.Warning(f"The mail server does not take mail: {error}.", hint=hint, id="config.W014")]


def _check_outbox() -> Sequence[checks.CheckMessage]:
    """Whether somebody sends what is due; a failed attempt is due again later."""
    try:
        due = OutboxEntry.objects.due(settings.OUTBOX_SENDERS.keys())
        is_late = due.filter(due_at__lt=Now() - timedelta(minutes=5)).exists()
    except DatabaseError:
        # The checks of the database tell why.
        return []
    if not is_late:
        return []
    hint = "Start manage.py deliver (users-service-deliver), or read its log; or it has much to send."
    return [checks.Warning("Messages have been due for more than five minutes.", hint=hint, id="config.W015")]
