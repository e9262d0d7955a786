from argparse import ArgumentParser

from django.db import transaction

from config.management.command import ServiceCommand
from users.management import operator


class Command(ServiceCommand):
    """Replaces Django's, which compares emails with regard to case and reads the password from a terminal only.

    The first app in INSTALLED_APPS provides a command, so this one is in `config`.
    """

    help = (
        "Changes the password of a user and ends the user's logins and sessions. The password is read from a prompt "
        "or, if standard input is not a terminal, from its first line."
    )
    example = "manage.py changepassword ann@example.com"
    interrupted = "Interrupted: the password is unchanged."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email of the user")

    def handle(self, *, email: str, **options: object) -> None:
        operator.get_user(email)
        password = operator.read_password()
        with transaction.atomic():
            user = operator.get_user(email, lock=True)
            operator.save_user({"password": password}, user)
        self.stdout.write(f"Changed the password of {user.email}.")
