"""System checks: insecure settings prevent the start."""

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


def test_backend_that_lets_tokens_log_in_is_refused(settings):
    settings.AUTHENTICATION_BACKENDS = ["oauth2_provider.backends.OAuth2Backend"]
    assert found() == ["config.E001"]


def test_middleware_that_lets_tokens_into_pages_is_refused(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "oauth2_provider.middleware.OAuth2TokenMiddleware"]
    assert found() == ["config.E001"]
