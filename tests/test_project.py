"""What Django and drf-spectacular find of the project as a whole: the checks of a deployment."""

import json
from importlib.resources import files

import jsonschema_rs
import pytest
from django.core.management import call_command
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.renderers import OpenApiJsonRenderer

from config.api.schema.generator import Generator


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
    document = Generator(api_version=version).get_schema(public=True)
    # With a warning, drf-spectacular has guessed.
    assert not GENERATOR_STATS
    # Not by `drf_spectacular.validation`, which takes three seconds to import.
    openapi = json.loads((files("drf_spectacular") / "validation/openapi_3_1_schema.json").read_text())
    jsonschema_rs.Draft202012Validator(openapi).validate(json.loads(OpenApiJsonRenderer().render(document)))
