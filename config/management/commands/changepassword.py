from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from users.management import operator
from users.models import User


class Command(BaseCommand):
    """Instead of Django's, which knows an email in its very letters only and asks a terminal for the password.

    Here, since the app that comes first in INSTALLED_APPS gives the command.
    """

    help = "Changes a user's password, read from standard input, and ends the user's logins and sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")

    def handle(self, *, email: str, **options: Any) -> None:
        found = User.objects.with_email(email)
        if not found.exists():
            raise CommandError(f"no user has the email {email}")
        password = operator.read_password()
        with transaction.atomic():
            user = found.select_for_update(no_key=True).first()
            if user is None:
                raise CommandError(f"no user has the email {email} any more")
            operator.save({"password": password}, user)
        self.stdout.write(f"The password of {user.email} was changed.")
