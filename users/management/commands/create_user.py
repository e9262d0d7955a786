from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from users.management import operator
from users.models import Role


class Command(BaseCommand):
    help = "Creates a user and prints its id. The password is read from standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--name", required=True, metavar="N", help="1 to 200 characters")
        parser.add_argument("--role", choices=Role.values, default=Role.USER.value, help="default: user")

    def handle(self, *args: Any, **options: Any) -> None:
        data = {name: options[name] for name in ("email", "name", "role")}
        self.stdout.write(str(operator.save(data | {"password": operator.read_password()}).pk))
