from typing import Any

from django.core.management.commands import migrate

from config.management.command import ServiceCommand
from config.management.migrations import setup_lock


class Command(ServiceCommand, migrate.Command):
    help = (
        "Applies missing migrations, as serve does before it serves. Waits while another process sets up "
        "the database. Uses DATABASE_MIGRATION_URL where that is set."
    )
    example = "manage.py migrate"
    interrupted = "Interrupted: completed migrations stay. Run the command again for the rest."

    def execute(self, *args: Any, **options: Any) -> str | None:
        # Around the system checks, which ask the database, too.
        with setup_lock():
            return super().execute(*args, **options)
