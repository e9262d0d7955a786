"""Says what is wrong with an installation."""

from django.conf import settings
from django.core import checks
from django.core.management.base import CommandError

from config.management.command import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Runs the system checks of an installation: of settings, proxies, PostgreSQL and Redis. Prints a line for each "
        "thing that is wrong, with what to do. Changes nothing; the exit code is 1 when anything is wrong."
    )
    example = "manage.py doctor"
    # They are what it prints.
    requires_system_checks = []

    def handle(self, **options: object) -> None:
        found = checks.run_checks(include_deployment_checks=not settings.LOCAL, databases=["default"])
        wrong = [message for message in found if message.level >= checks.WARNING and not message.is_silenced()]
        for message in wrong:
            self.stdout.write(" ".join(f"{message.msg} {message.hint or ''} ({message.id})".split()))
        if wrong:
            raise CommandError(f"{len(wrong)} {'thing is' if len(wrong) == 1 else 'things are'} wrong.")
        self.stdout.write("Nothing is wrong.")
