"""The counts behind the totals of lists: checked against the rows, and put right."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from config import counting


class Command(BaseCommand):
    help = "Compares the counts behind the totals of lists with the rows, and counts anew where they differ."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="compare only; fails when a count is wrong")

    def handle(self, *, check: bool, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
        if not check:
            counting.fold()
        wrong = 0
        for counts in counting.every():
            if different := counts.differences():
                wrong += 1
                self.stdout.write(f"{counts.table}: {different:,} counts are wrong")
                if not check:
                    counts.recount()
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
        if check and wrong:
            raise CommandError("Some counts are wrong: run manage.py recount.")
        self.stdout.write("The counts are right.")
