"""The counts behind the totals of lists: checked against the rows, and put right."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection

from config import counting
from config.management.command import ServiceCommand
from config.management.progress import progress


class Command(ServiceCommand):
    help = (
        "Compares the counts behind the totals of lists with the rows, and counts anew where they differ. Run it where "
        "triggers were turned off; writers of a table wait while it is counted anew."
    )
    example = "manage.py recount --check"
    interrupted = "Interrupted: each table has its old counts or its new ones; run it again for the rest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only compare, and fail when a count is wrong")

    def handle(self, *, check: bool, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
        if not check:
            counting.fold()
        wrong = 0
        tables = counting.every()
        with progress("Tables", len(tables)) as advance:
            for counts in tables:
                if different := counts.differences():
                    wrong += 1
                    self.stdout.write(f"{counts.table}: {different:,} counts are wrong")
                    if not check:
                        counts.recount()
                advance(1)
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
        if check and wrong:
            raise CommandError("Some counts are wrong: run manage.py recount.")
        self.stdout.write("The counts are right.")
