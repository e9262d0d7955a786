"""Checks and repairs the row counts that give lists their totals."""

from django.core.management.base import CommandError, CommandParser

from config.management.command import ServiceCommand, direct_connection
from config.postgresql import row_counts


class Command(ServiceCommand):
    help = (
        "Compares the stored row counts, which give lists their totals, with the rows, and repairs wrong ones. Run it "
        "after triggers were disabled. Writes to a table wait while its counts are repaired."
    )
    example = "manage.py recount --check"
    interrupted = "Interrupted: each table has its old or its new counts. Run the command again for the rest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only compare, and fail if a count is wrong")

    def handle(self, *, check: bool, **options: object) -> None:
        wrong = False
        with direct_connection():
            if not check:
                row_counts.compact()
            for counts in row_counts.get_all_counts():
                if different := counts.differences():
                    wrong = True
                    self.stdout.write(f"{counts.table}: {different:,} counts are wrong")
                    if not check:
                        counts.recount()
        if check and wrong:
            raise CommandError("Some counts are wrong. Run manage.py recount.")
        self.stdout.write("All counts are correct.")
