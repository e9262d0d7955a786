import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.models import Application
from accounts.services import save_new_application
from users.models import User


class Command(BaseCommand):
    help = "Registers an OAuth application and prints its id and secret as JSON. The secret cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="what users read when they are asked for consent")
        parser.add_argument("--owner", required=True, metavar="EMAIL", help="for whom client credentials act")
        parser.add_argument("--grant", required=True, metavar="authorization-code|client-credentials")
        parser.add_argument("--scopes", required=True, metavar='"users:read …"', help="what it may ask for at most")
        parser.add_argument("--redirect-uri", action="append", default=[], metavar="U", help="may be repeated")
        parser.add_argument("--public", action="store_true", help="a client that cannot keep a secret: it gets none")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = User.objects.with_email(options["owner"]).first()
        if owner is None:
            raise CommandError(f"no user has the email {options['owner']}")
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
            raise CommandError(" ".join(error.messages)) from None
        with transaction.atomic():
            secret = save_new_application(application)
        printed = {"client_id": application.client_id} | ({"client_secret": secret} if secret else {})
        self.stdout.write(json.dumps(printed))
