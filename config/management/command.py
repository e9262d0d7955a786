"""What the commands of the service have in common: a help that shows an example, errors of one line, and their time."""

from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connection
from psycopg.errors import UndefinedColumn, UndefinedTable

INTERRUPTED = 130


class _Parser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """Ends with one line, where argparse prints the usage first, which is long; `--help` does that."""
        if not self.called_from_command_line:
            super().error(message)
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class _Formatter(RawDescriptionHelpFormatter):
    """Fills the description as argparse does, and leaves the example as it stands."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super(RawDescriptionHelpFormatter, self)._fill_text
        return "\n".join(
            line if line.startswith("  ") or not line else fill(line, width, indent) for line in text.split("\n")
        )


class ServiceCommand(BaseCommand):
    """A command whose errors are one line on the standard error, and an exit code other than 0.

    Attributes:
        example: how it is called, from `manage.py` on.
        interrupted: what Ctrl-C leaves behind.
    """

    example: ClassVar[str]
    interrupted: ClassVar[str] = "Interrupted."
    # What every command of Django has, and nobody needs to read about each time; it works all the same.
    suppressed_base_arguments = {
        "--version",
        "--verbosity",
        "--settings",
        "--pythonpath",
        "--traceback",
        "--no-color",
        "--force-color",
    }

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        example = f"Example:\n  {self.example}"
        parser = super().create_parser(
            prog_name, subcommand, formatter_class=_Formatter, epilog=example, allow_abbrev=False, **options
        )
        parser.__class__ = _Parser
        return parser

    def execute(self, *args: Any, **options: Any) -> Any:
        try:
            return super().execute(*args, **options)
        except KeyboardInterrupt:
            raise CommandError(self.interrupted, returncode=INTERRUPTED) from None
        except Error as error:
            raise CommandError(_in_one_line(error)) from error


@contextmanager
def no_statement_timeout() -> Iterator[None]:
    """Gives statements the time they take: one look at a whole table is as long as the table."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    try:
        yield
    finally:
        # What went wrong inside is the thing to tell.
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")


def _in_one_line(error: Error) -> str:
    reason = str(error).partition("\n")[0]
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return f"The tables are not those of this release: {reason}; run manage.py migrate."
    return f"The database failed: {reason}"
