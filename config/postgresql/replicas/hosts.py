"""Several hosts of a database: the one that answered last is asked first."""

from typing import Any

from django.db.backends.signals import connection_created
from django.dispatch import receiver

_DEFAULT_PORT = 5432


@receiver(connection_created)
def ask_first(connection: Any, **options: object) -> None:
    """Moves the host of a new connection to the front, so that a silent one delays a process once.

    Args:
        connection: of Django, whose settings all threads share.
        options: what else the signal tells.
    """
    settings = connection.settings_dict
    hosts, ports = settings["HOST"].split(","), settings["PORT"].split(",")
    if len(hosts) == 1:
        return
    info = connection.connection.info
    pairs = list(zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True))
    # False sorts before True, and the order of the others stays.
    pairs.sort(key=lambda pair: (pair[0], int(pair[1] or _DEFAULT_PORT)) != (info.host, info.port))
    settings.update(HOST=",".join(host for host, _ in pairs), PORT=",".join(port for _, port in pairs))
