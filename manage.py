#!/usr/bin/env python
"""Django's command line, which starts the embedded database where no other is configured."""

import os
import signal
import sys
from contextlib import nullcontext

# `serve` starts the database itself, after it has reserved the port.
COMMANDS_WITHOUT_DATABASE = {"serve", "help", "version"}
# Commands of Django and django-oauth-toolkit that bypass the rules of the service, and what to use instead.
REPLACED = {
    "clearcimdapplications": "purge",
    "clearsessions": "purge",
    "cleartokens": "purge",
    "createapplication": "create_oauth_application",
    "createsuperuser": "create_user EMAIL --name N --role admin",
}
# `serve` starts commands with --parent, and has the database.
OPTIONS_WITHOUT_DATABASE = {"--help", "-h", "--version", "--parent"}


def may_need_database(arguments: list[str]) -> bool:
    """Whether a command may need the database; only a few are known not to."""
    return (
        bool(arguments)
        and arguments[0] not in COMMANDS_WITHOUT_DATABASE
        and OPTIONS_WITHOUT_DATABASE.isdisjoint(arguments)
    )


def main(arguments: list[str]) -> None:
    for name in REPLACED.keys() & set(arguments[1:2]):
        sys.exit(f"manage.py: There is no {name} here; use: manage.py {REPLACED[name]}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import NotSupportedError, OperationalError

    from config.local.account import EmbeddedDatabaseError
    from config.local.cluster import get_default_cluster

    # SIGTERM must stop the database that the command started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        start = settings.EMBEDDED_DATABASE and may_need_database(arguments[1:])
        with get_default_cluster().running() if start else nullcontext():
            if start and arguments[1] != "migrate":
                django.setup()
                from config.management.migrations import migrate_new_database

                migrate_new_database()
            execute_from_command_line(arguments)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (EmbeddedDatabaseError, ImproperlyConfigured, NotSupportedError, OperationalError, PermissionError) as error:
        sys.exit(f"manage.py: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main(sys.argv)
