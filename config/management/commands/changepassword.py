from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from config.management.command import ServiceCommand
from users.management import operator


class Command(ServiceCommand):
    """Instead of Django's, which knows an email in its very letters only and asks a terminal for the password.

    Here, since the app that comes first in INSTALLED_APPS gives the command.
    """

    help = (
        "Changes a user's password and ends the user's logins and sessions. The password is the first line of standard "
        "input; from a terminal it is asked for."
    )
    example = "manage.py changepassword ann@example.com"
    interrupted = "Interrupted: the password is the old one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="whose password it is")

    def handle(self, *, email: str, **options: Any) -> None:
        operator.find(email)
        password = operator.read_password()
        with transaction.atomic():
            user = operator.find(email, lock=True)
            operator.save({"password": password}, user)
        self.stdout.write(f"The password of {user.email} was changed.")
