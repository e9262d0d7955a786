"""Says what is right and what is wrong with an installation."""

from django.core.management.base import CommandError

from config.management.command import ServiceCommand
from config.management.diagnosis import Verdict, diagnose


class Command(ServiceCommand):
    help = (
        "Looks at settings, secrets, proxies, the database, migrations, row counts, clocks, disk and expired rows. "
        "Prints a line for each: right, WRONG with what to do, or unknown. Changes nothing; the exit code is 1 when "
        "anything is wrong. Row counts are looked at by samples; manage.py recount --check looks at all."
    )
    example = "manage.py doctor"
    # They are the first of its findings.
    requires_system_checks = []

    def handle(self, **options: object) -> None:
        wrong = 0
        for finding in diagnose():
            self.stdout.write(str(finding))
            wrong += finding.verdict is Verdict.WRONG
        if wrong:
            raise CommandError(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong.")
