from argparse import ArgumentParser
from typing import Any

from config.management.command import ServiceCommand
from users.management import operator
from users.models import Role


class Command(ServiceCommand):
    help = (
        "Creates a user and prints its id. The password is the first line of standard input; from a terminal it is "
        "asked for."
    )
    example = 'manage.py create_user ann@example.com --name "Ann Lee" --role support'
    interrupted = "Interrupted: nobody was created."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="with which the user logs in; nobody else may have it")
        parser.add_argument("--name", required=True, metavar="NAME", help="1 to 200 characters")
        parser.add_argument(
            "--role", choices=Role.values, default=Role.USER.value, help="what the user may do (default: user)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data = {name: options[name] for name in ("email", "name", "role")}
        self.stdout.write(str(operator.save(data | {"password": operator.read_password()}).pk))
