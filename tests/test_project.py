"""What Django and drf-spectacular find of the project as a whole: the checks of a deployment."""

import os

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_every_change_of_a_model_has_its_migration():
    call_command("makemigrations", "--check", "--dry-run")


@pytest.mark.django_db
def test_a_deployment_has_nothing_to_warn_of(settings, make_user):
    make_user("admin")
    settings.TRUSTED_PROXIES = 1
    call_command("check", "--deploy", "--fail-level", "WARNING", "--database", "default")


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_document_is_valid_and_complete(version):
    call_command("spectacular", "--api-version", version, "--validate", "--fail-on-warn", "--file", os.devnull)
