from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.services import create_api_key
from config import audit
from config.api.principal import AUDIT_SCOPE, SCOPES
from config.management.command import ServiceCommand
from users.management import operator


def _parse_scopes(text: str) -> list[str]:
    scopes = text.split()
    if not scopes or not set(scopes) <= set(SCOPES):
        raise ArgumentTypeError(f"separate scopes with spaces. Available: {' '.join(SCOPES)}")
    return scopes


def _parse_days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 36500:
        raise ArgumentTypeError("a whole number of days from 1 to 36500")
    return int(text)


class Command(ServiceCommand):
    help = "Creates an API key for a user and prints it. The key cannot be shown again."
    example = 'manage.py create_api_key ann@example.com --scopes "users:read orders:read" --days 90'
    interrupted = "Interrupted: unless a key was printed, none was created."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email of the user")
        parser.add_argument(
            "--scopes",
            type=_parse_scopes,
            metavar='"SCOPE …"',
            help=f"the scopes of the key, from: {' '.join(SCOPES)} (default: all but {AUDIT_SCOPE})",
        )
        parser.add_argument(
            "--days",
            type=_parse_days,
            metavar="N",
            help="the number of days after which the key expires, 1 to 36500 (default: never)",
        )

    def handle(self, *args: object, **options: Any) -> None:
        user = operator.get_user(options["email"])
        days = options["days"]
        expires_at = timezone.now() + timedelta(days=days) if days else None
        with audit.rows_alone(), transaction.atomic():
            _, key = create_api_key(user, name="command line", scopes=options["scopes"], expires_at=expires_at)
        self.stdout.write(key)
