"""What the commands on users share: whoever may run them may do everything, by the rules of the API."""

import getpass
import sys
from typing import Any

from django.core.management.base import CommandError
from rest_framework.exceptions import ValidationError

from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError
from users.models import Role, User
from users.serializers import UserSerializer


def read_password() -> str:
    """The first line of standard input; from a terminal unseen, and twice.

    Raises:
        CommandError: there is none, or the two differ.
    """
    if not sys.stdin.isatty():
        # The line's end is not the password's.
        return sys.stdin.readline().rstrip("\r\n")
    try:
        password = getpass.getpass()
        again = getpass.getpass("Password (again): ")
    except EOFError:
        raise CommandError("no password was given") from None
    if password != again:
        raise CommandError("the two passwords differ")
    return password


def find(email: str, *, lock: bool = False) -> User:
    """The user with an email, whose row is locked if the caller changes it.

    Raises:
        CommandError: there is none.
    """
    found = User.objects.with_email(email)
    user = (found.select_for_update(no_key=True) if lock else found).first()
    if user is None:
        raise CommandError(f"no user has the email {email!r}; manage.py create_user creates one")
    return user


def save(data: dict[str, Any], user: User | None = None) -> User:
    """Creates a user, or changes those fields of one whose row is locked.

    Raises:
        CommandError: what the API would refuse, in one line.
    """
    operator = Principal(User(role=Role.ADMIN), ALL_SCOPES, "basic")
    context = {"principal": operator, "version": None}
    serializer = UserSerializer(user, data=data, partial=user is not None, context=context)
    try:
        serializer.is_valid(raise_exception=True)
        return serializer.save()
    except ValidationError as error:
        problems = [f"{field}: {' '.join(messages)}" for field, messages in error.detail.items()]
        raise CommandError("; ".join(problems)) from None
    except DomainError as error:
        raise CommandError(error.message) from None
