from argparse import ArgumentParser

from config import audit
from config.management.command import ServiceCommand
from users.management import operator
from users.models import Role


class Command(ServiceCommand):
    help = (
        "Creates a user and prints its id. The password is read from a prompt or, if standard input is not a terminal, "
        "from its first line."
    )
    example = 'manage.py create_user ann@example.com --name "Ann Lee" --role support'
    interrupted = "Interrupted: no user was created."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email of the user, which must be unique")
        parser.add_argument("--name", required=True, metavar="NAME", help="the name of the user, 1 to 200 characters")
        parser.add_argument(
            "--role", choices=Role.values, default=Role.USER.value, help="the role of the user (default: user)"
        )

    def handle(self, *args: object, **options: object) -> None:
        data = {name: options[name] for name in ("email", "name", "role")}
        data["password"] = operator.read_password()
        with audit.rows_alone():
            user = operator.save_user(data)
        self.stdout.write(str(user.pk))
