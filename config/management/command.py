"""The base of the commands: a help with an example, errors of one line, and a connection for what takes long."""

from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import ClassVar, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection
from psycopg import OperationalError
from psycopg.errors import UndefinedColumn, UndefinedTable

from config.postgresql.database_url import with_parameters

INTERRUPTED = 130


class _Parser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """Exits with one line. argparse prints the whole usage first, which `--help` shows."""
        if not self.called_from_command_line:
            super().error(message)
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class ServiceCommand(BaseCommand):
    """A command whose errors are one line on the standard error, and an exit code other than 0.

    Attributes:
        example: a command line, from `manage.py` on.
        interrupted: the message after Ctrl-C.
    """

    example: ClassVar[str]
    interrupted = "Interrupted."

    def create_parser(self, prog_name: str, subcommand: str, **options: object) -> CommandParser:
        options |= {"formatter_class": RawDescriptionHelpFormatter, "allow_abbrev": False}
        parser = super().create_parser(prog_name, subcommand, epilog=f"Example:\n  {self.example}", **options)
        parser.description = fill(self.help)
        parser.__class__ = _Parser
        return parser

    def execute(self, *args: object, **options: object) -> str | None:
        try:
            return super().execute(*args, **options)
        except KeyboardInterrupt:
            raise CommandError(self.interrupted, returncode=INTERRUPTED) from None
        except Error as error:
            raise CommandError(_describe_in_one_line(error)) from error


@contextmanager
def direct_connection() -> Iterator[None]:
    """Lets the block use a connection past a pooler (DATABASE_MIGRATION_URL) without the time-outs of requests.

    A scan of a whole table may take longer than a request may, and so may Python between two statements of a migration.
    Inside a transaction the block is a part of that.
    """
    if connection.in_atomic_block:
        yield
        return
    before = connection.settings_dict
    connection.close()
    direct = {**before, **settings.DIRECT_DATABASE}
    connection.settings_dict = with_parameters(direct, statement_timeout="0", idle_in_transaction_session_timeout="1h")
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def _describe_in_one_line(error: Error) -> str:
    reason = str(error).partition("\n")[0]
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return f"The tables do not match this release: {reason}. Run manage.py migrate."
    if "unsupported startup parameter" in reason:
        return "DATABASE_URL points to a pooler. Set DATABASE_MIGRATION_URL to the database itself."
    if isinstance(error.__cause__, OperationalError) and error.__cause__.sqlstate is None:
        return f"There is no connection to the database: {reason}. Check DATABASE_URL, and that PostgreSQL is running."
    return f"The database failed: {reason}"
