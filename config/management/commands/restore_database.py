from pathlib import Path

from django.core.management.base import CommandParser
from django.db import connections

from config.local import transfer
from config.local.cluster import get_default_cluster
from config.management.command import EmbeddedDatabaseCommand


class Command(EmbeddedDatabaseCommand):
    help = (
        "Puts what dump_database has written in the place of the embedded database, all of it or nothing. Stop the "
        "service first. For another database use pg_restore."
    )
    example = "manage.py restore_database service.dump"
    interrupted = "Interrupted: the database is unchanged."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="that dump_database, or pg_dump --format custom, has written")

    def handle(self, *, file: Path, **options: object) -> None:
        self.refuse_other_database()
        connections.close_all()
        transfer.restore(get_default_cluster(), file.absolute())
