import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from config.api.errors import DomainError
from config.api.principal import ALL_SCOPES, Principal
from users.models import Role, User
from users.serializers import UserSerializer


class Command(BaseCommand):
    help = "Creates a user and prints its id. The password is read from standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--name", required=True, metavar="N", help="1 to 200 characters")
        parser.add_argument("--role", choices=Role.values, default=Role.USER.value, help="default: user")

    def handle(self, *args: Any, **options: Any) -> None:
        # The line's end is not the password's.
        try:
            password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
        except EOFError:
            raise CommandError("no password was given") from None
        # Whoever may run this command may do everything: the rules of the API apply, not those of a role.
        operator = Principal(User(role=Role.ADMIN), ALL_SCOPES, "basic")
        serializer = UserSerializer(
            data={"email": options["email"], "name": options["name"], "role": options["role"], "password": password},
            context={"principal": operator},
        )
        try:
            serializer.is_valid(raise_exception=True)
            self.stdout.write(str(serializer.save().pk))
        except ValidationError as error:
            problems = [f"{field}: {' '.join(messages)}" for field, messages in error.detail.items()]
            raise CommandError("; ".join(problems)) from None
        except DomainError as error:
            raise CommandError(error.message) from None
