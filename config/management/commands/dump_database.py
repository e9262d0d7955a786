from pathlib import Path

from django.core.management.base import CommandParser

from config.local import transfer
from config.local.cluster import get_default_cluster
from config.management.command import EmbeddedDatabaseCommand


class Command(EmbeddedDatabaseCommand):
    help = (
        "Writes the embedded database to a new file, in the custom format of pg_dump. The service may run meanwhile. "
        "For another database use pg_dump."
    )
    example = "manage.py dump_database service.dump"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="that is written, and must not exist yet")

    def handle(self, *, file: Path, **options: object) -> None:
        self.refuse_other_database()
        transfer.dump(get_default_cluster(), file.absolute())
