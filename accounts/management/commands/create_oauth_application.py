import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from accounts.models import Application
from accounts.services import save_new_application
from config import audit
from config.api.principal import SCOPES
from config.management.command import ServiceCommand
from users.management import operator

GRANTS = (Application.GRANT_AUTHORIZATION_CODE, Application.GRANT_CLIENT_CREDENTIALS)
# By the field of the application that each fills.
OPTIONS = {"allowed_scopes": "--scopes", "redirect_uris": "--redirect-uri", "client_type": "--public"}


class Command(ServiceCommand):
    help = "Registers an OAuth application and prints its id and secret as JSON. The secret cannot be shown again."

    example = (
        "manage.py create_oauth_application Shop --owner ann@example.com \\\n"
        '    --grant authorization-code --scopes "users:read orders:read" \\\n'
        "    --redirect-uri https://shop.example/callback --public"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what users read when they are asked for consent")
        parser.add_argument(
            "--owner",
            required=True,
            metavar="EMAIL",
            help="who answers for it, and for whom its client credentials act",
        )
        parser.add_argument("--grant", required=True, choices=GRANTS, metavar="GRANT", help=" or ".join(GRANTS))
        parser.add_argument(
            "--scopes", required=True, metavar='"SCOPE …"', help=f"what it may ask for at most, of: {' '.join(SCOPES)}"
        )
        parser.add_argument(
            "--redirect-uri",
            action="append",
            default=[],
            metavar="URI",
            help="where users come back to; may be repeated",
        )
        parser.add_argument("--public", action="store_true", help="a client that cannot keep a secret: it gets none")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = operator.find(options["owner"])
        application = Application(
            name=options["name"],
            owner=owner,
            authorization_grant_type=options["grant"],
            client_type=Application.CLIENT_PUBLIC if options["public"] else Application.CLIENT_CONFIDENTIAL,
            allowed_scopes=list(dict.fromkeys(options["scopes"].split())),
            redirect_uris=" ".join(options["redirect_uri"]),
        )
        try:
            application.full_clean()
        except ValidationError as error:
            problems = [f"{OPTIONS.get(name, name)}: {' '.join(told)}" for name, told in error.message_dict.items()]
            raise CommandError("; ".join(problems)) from None
        with audit.rows_alone(), transaction.atomic():
            secret = save_new_application(application)
        printed = {"client_id": application.client_id} | ({"client_secret": secret} if secret else {})
        self.stdout.write(json.dumps(printed))
