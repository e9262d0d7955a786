"""System checks for settings that are insecure or contradict each other."""

from collections.abc import Iterator
from datetime import timedelta
from time import time

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from config.api.versions import versioning
from config.api.versions.table import midnight
from config.site import documentation

NOTICE_BEFORE_SUNSET = timedelta(days=90)
MIN_KEY_LENGTHS = {"SECRET_KEY": 50, "JWT_SIGNING_KEY": 32}

# Settings of django-oauth-toolkit, each of which refuses what OAuth 2.0 allowed and RFC 9700 deprecates.
RFC_9700_SETTINGS = {
    f"COMPLIANT_BCP_RFC9700_{name}"
    for name in (
        "ACCESS_TOKEN_TRANSPORT",
        "AUTHZ_RESPONSE_ISS",
        "IMPLICIT_GRANT",
        "PASSWORD_GRANT",
        "PKCE_METHOD",
        "PKCE_REQUIRED",
        "REDIRECT_URI_MATCHING",
        "REDIRECT_URI_SCHEME",
        "REFRESH_TOKEN",
        "TOKEN_STORAGE",
    )
}


@register(Tags.security)
def check_oauth(**options: object) -> list[CheckMessage]:
    """Refuses components and settings of django-oauth-toolkit that let in more than the service's own do."""
    return [Error(message, id=f"config.E00{number}") for number, message in _find_insecure_oauth_settings()]


def _find_insecure_oauth_settings() -> Iterator[tuple[int, str]]:
    # With the backend a bearer token logs in without a password; with the middleware it authenticates every page.
    if any(path.startswith("oauth2_provider.") for path in settings.AUTHENTICATION_BACKENDS):
        yield 1, "AUTHENTICATION_BACKENDS must not list a backend of django-oauth-toolkit."
    if any(path.startswith("oauth2_provider.") for path in settings.MIDDLEWARE):
        yield 2, "MIDDLEWARE must not list a middleware of django-oauth-toolkit."
    if disabled := sorted(name for name in RFC_9700_SETTINGS if not settings.OAUTH2_PROVIDER.get(name)):
        yield 3, f"OAUTH2_PROVIDER must turn on {', '.join(disabled)}."
    if "http" in settings.OAUTH2_PROVIDER.get("ALLOWED_REDIRECT_URI_SCHEMES", ["http"]) and not (
        settings.LOCAL or settings.DEBUG
    ):
        yield 4, "ALLOWED_REDIRECT_URI_SCHEMES of OAUTH2_PROVIDER must not hold http outside LOCAL and DEBUG."


@register(Tags.security)
def check_key_lengths(**options: object) -> list[CheckMessage]:
    """Refuses short keys. config.settings validates those of the environment; they can also come from elsewhere."""
    short = [name for name, length in MIN_KEY_LENGTHS.items() if len(getattr(settings, name)) < length]
    return [Error(f"{name} must have at least {MIN_KEY_LENGTHS[name]} characters.", id="config.E005") for name in short]


@register
def check_guide(**options: object) -> list[CheckMessage]:
    """Refuses a checkout without the guide, whose pages are read at the first request for one."""
    folder = documentation.GUIDE_FOLDER
    missing = [name for name in documentation.PAGES if not (folder / f"{name}.md").is_file()]
    hint = "The service runs from a whole checkout; copy docs/, too."
    return [Error(f"{folder} lacks {', '.join(missing)}.", hint=hint, id="config.E006")] if missing else []


@register(Tags.compatibility)
def check_default_version(**options: object) -> list[CheckMessage]:
    """Warns 90 days before the sunset of the version of requests that name none."""
    version = versioning.get_default_version()
    if version.sunset is None or time() < midnight(version.sunset) - NOTICE_BEFORE_SUNSET.total_seconds():
        return []
    message = f"Version {version}, which a request without a version gets, ends on {version.sunset}."
    return [checks.Warning(message, hint="Move DEFAULT_API_VERSION.", id="config.W001")]


@register(Tags.compatibility)
def check_quotas(**options: object) -> list[CheckMessage]:
    """Warns of a Redis that has nothing to count."""
    if not settings.QUOTA_URL or settings.RATE_LIMIT_PRINCIPAL or settings.RATE_LIMIT_ANONYMOUS:
        return []
    message = "QUOTA_URL names a Redis, and no request is limited."
    return [checks.Warning(message, hint="Set RATE_LIMIT_PRINCIPAL or RATE_LIMIT_ANONYMOUS.", id="config.W002")]
