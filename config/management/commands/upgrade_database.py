from pathlib import Path

from django.core.management.base import CommandParser

from config.local import transfer
from config.local.cluster import get_default_cluster
from config.management.command import EmbeddedDatabaseCommand


class Command(EmbeddedDatabaseCommand):
    help = (
        "Brings the embedded database to the version of PostgreSQL that this release brings. Stop the service first. "
        "The programs of the present version are needed, such as those of Debian's package postgresql-17."
    )
    example = "manage.py upgrade_database /usr/lib/postgresql/17/bin"
    interrupted = "Interrupted: the data is as it was."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("binaries", type=Path, help="the folder of the programs of the present version")

    def handle(self, *, binaries: Path, **options: object) -> None:
        self.refuse_other_database()
        kept = transfer.upgrade(get_default_cluster(), binaries.absolute())
        self.stdout.write(f"Done. The data of before is in {kept}")
