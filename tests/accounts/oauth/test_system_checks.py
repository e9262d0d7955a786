"""System checks: insecure settings prevent the start."""

import pytest
from django.conf import settings as configured
from django.core.checks import run_checks

GATES = [name for name in configured.OAUTH2_PROVIDER if name.startswith("COMPLIANT_BCP_RFC9700_")]


def found():
    return [message.id for message in run_checks(tags=["security"]) if message.id.startswith("config.")]


def test_settings_as_they_are_pass():
    assert found() == []


def test_every_gate_of_the_toolkit_is_on():
    from oauth2_provider.settings import DEFAULTS

    assert sorted(GATES) == sorted(name for name in DEFAULTS if name.startswith("COMPLIANT_BCP_"))
    assert all(configured.OAUTH2_PROVIDER[name] is True for name in GATES)


@pytest.mark.parametrize("gate", GATES)
def test_gate_that_is_off_is_refused(settings, gate):
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {gate: False}
    assert found() == ["config.E003"]


def test_backend_that_lets_tokens_log_in_is_refused(settings):
    settings.AUTHENTICATION_BACKENDS = ["oauth2_provider.backends.OAuth2Backend"]
    assert found() == ["config.E001"]


def test_middleware_that_lets_tokens_into_pages_is_refused(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "oauth2_provider.middleware.OAuth2TokenMiddleware"]
    assert found() == ["config.E002"]


def test_plain_http_redirects_are_refused_in_production(settings):
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"]}
    assert found() == ["config.E004"]
    settings.DEBUG = True
    assert found() == []


@pytest.mark.parametrize("name", ["SECRET_KEY", "JWT_SIGNING_KEY"])
def test_short_key_is_refused(settings, name):
    setattr(settings, name, "short")
    assert found() == ["config.E005"]
