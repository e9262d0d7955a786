"""The counts behind the totals of lists: checked against the rows, and put right."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from config.management.command import ServiceCommand, no_statement_timeout
from config.management.progress import progress
from config.postgresql import row_counts


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
        with no_statement_timeout():
            if not check:
                row_counts.fold()
            wrong = self._compare(repair=not check)
        if check and wrong:
            raise CommandError("Some counts are wrong: run manage.py recount.")
        self.stdout.write("The counts are right.")

    def _compare(self, *, repair: bool) -> bool:
        """Whether the counts of any table differ from its rows, or did until they were put right."""
        wrong = False
        tables = row_counts.every()
        with progress("Tables", len(tables)) as advance:
            for counts in tables:
                if different := counts.differences():
                    wrong = True
                    self.stdout.write(f"{counts.table}: {different:,} counts are wrong")
                    if repair:
                        counts.recount()
                advance(1)
        return wrong
