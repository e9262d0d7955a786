"""Users as commands read and write them: with all rights, and by the validation of the API."""

import getpass
import sys
from collections.abc import Mapping

from django.core.management.base import CommandError
from rest_framework.exceptions import ValidationError

from config.api.principal import ALL_SCOPES, Principal
from config.http.errors import DomainError
from users.models import Role, User
from users.serializers import UserSerializer


def read_password() -> str:
    """The first line of standard input or, from a terminal, what is typed twice without echo.

    Raises:
        CommandError: nothing was typed, or the two differ.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        password = getpass.getpass()
        again = getpass.getpass("Password (again): ")
    except EOFError:
        raise CommandError("no password was given") from None
    if password != again:
        raise CommandError("the two passwords differ")
    return password


def get_user(email: str, *, lock: bool = False) -> User:
    """The user with an email.

    Args:
        email: compared without regard to case.
        lock: whether to lock the row FOR NO KEY UPDATE; needs a transaction.

    Raises:
        CommandError: no user has it.
    """
    users = User.objects.with_email(email)
    user = (users.select_for_update(no_key=True) if lock else users).first()
    if user is None:
        raise CommandError(f"no user has the email {email!r}; manage.py create_user creates one")
    return user


def save_user(data: Mapping[str, object], user: User | None = None) -> User:
    """Creates a user, or updates one.

    Args:
        data: fields of UserSerializer; of an update only those to change.
        user: the user to update, whose row the caller has locked.

    Raises:
        CommandError: the API would refuse the data; the message is one line.
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
