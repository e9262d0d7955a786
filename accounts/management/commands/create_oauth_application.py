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
# Keyed by the field of the application.
OPTIONS = {"allowed_scopes": "--scopes", "redirect_uris": "--redirect-uri", "client_type": "--public"}


class Command(ServiceCommand):
    help = "Creates an OAuth application and prints its ID and secret as JSON. The secret cannot be shown again."
    example = (
        "manage.py create_oauth_application Shop --owner ann@example.com \\\n"
        '    --grant authorization-code --scopes "users:read orders:read" \\\n'
        "    --redirect-uri https://shop.example/callback --public"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the name that the consent page shows to users")
        parser.add_argument(
            "--owner",
            required=True,
            metavar="EMAIL",
            help="the email of the owner, as whom the application acts with client credentials",
        )
        parser.add_argument(
            "--grant", required=True, choices=GRANTS, metavar="GRANT", help=f"the grant type, {' or '.join(GRANTS)}"
        )
        parser.add_argument(
            "--scopes", required=True, metavar='"SCOPE …"', help=f"the allowed scopes, from: {' '.join(SCOPES)}"
        )
        parser.add_argument(
            "--redirect-uri",
            action="append",
            default=[],
            metavar="URI",
            help="an allowed redirect URI; may be repeated",
        )
        parser.add_argument("--public", action="store_true", help="create a public client, which has no secret")

    def handle(self, *args: object, **options: Any) -> None:
        owner = operator.get_user(options["owner"])
        application = Application(
            name=options["name"],
            owner=owner,
            authorization_grant_type=options["grant"],
            client_type=Application.CLIENT_PUBLIC if options["public"] else Application.CLIENT_CONFIDENTIAL,
            allowed_scopes=list(dict.fromkeys(options["scopes"].split())),
            redirect_uris=" ".join(options["redirect_uri"]),
        )
        if not application.allowed_scopes:
            # An administrator may take all scopes away, to end an application's use; a new one would never get a token.
            raise CommandError(f"--scopes: Must name at least one of: {' '.join(SCOPES)}.")
        try:
            application.full_clean()
        except ValidationError as error:
            problems = [
                f"{OPTIONS.get(name, name)}: {' '.join(messages)}" for name, messages in error.message_dict.items()
            ]
            raise CommandError("; ".join(problems)) from None
        with audit.rows_alone(), transaction.atomic():
            secret = save_new_application(application)
        output = {"client_id": application.client_id} | ({"client_secret": secret} if secret else {})
        self.stdout.write(json.dumps(output))
