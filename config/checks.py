"""System checks for settings that contradict each other or open a door."""

from collections.abc import Iterator
from datetime import timedelta
from time import time
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from config.api.versions import versioning
from config.api.versions.table import midnight
from config.site import documentation

NOTICE_BEFORE_SUNSET = timedelta(days=90)

# RFC 9700's gates of the toolkit: each refuses something that OAuth 2.0 once allowed.
GATES = {
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
def oauth_doors(**options: Any) -> list[CheckMessage]:
    return [Error(message, id=f"config.E00{number}") for number, message in _oauth_doors()]


def _oauth_doors() -> Iterator[tuple[int, str]]:
    # The backend lets any bearer token log in with a wrong password; the middleware lets one into every page.
    if any(path.startswith("oauth2_provider.") for path in settings.AUTHENTICATION_BACKENDS):
        yield 1, "AUTHENTICATION_BACKENDS must not list a backend of django-oauth-toolkit."
    if any(path.startswith("oauth2_provider.") for path in settings.MIDDLEWARE):
        yield 2, "MIDDLEWARE must not list a middleware of django-oauth-toolkit."
    if off := sorted(gate for gate in GATES if not settings.OAUTH2_PROVIDER.get(gate)):
        yield 3, f"OAUTH2_PROVIDER must turn on {', '.join(off)}."
    if "http" in settings.OAUTH2_PROVIDER.get("ALLOWED_REDIRECT_URI_SCHEMES", ["http"]) and not settings.DEBUG:
        yield 4, "ALLOWED_REDIRECT_URI_SCHEMES of OAUTH2_PROVIDER must not hold http outside DEBUG."


@register(Tags.security)
def keys(**options: Any) -> list[CheckMessage]:
    """The environment is checked as it is read (config.settings); this is for settings that come from elsewhere."""
    least = {"SECRET_KEY": 50, "JWT_SIGNING_KEY": 32}
    short = [name for name, length in least.items() if len(getattr(settings, name)) < length]
    return [Error(f"{name} must have at least {least[name]} characters.", id="config.E005") for name in short]


@register
def guide(**options: Any) -> list[CheckMessage]:
    """Pages are rendered when the first one is asked for; whether they are there is looked at before."""
    missing = [name for name in documentation.PAGES if not (documentation.FOLDER / f"{name}.md").is_file()]
    hint = "The service runs from a whole checkout; copy docs/, too."
    return (
        [Error(f"{documentation.FOLDER} lacks {', '.join(missing)}.", hint=hint, id="config.E006")] if missing else []
    )


@register(Tags.compatibility)
def default_version(**options: Any) -> list[CheckMessage]:
    version = versioning.default()
    if version.sunset is None or time() < midnight(version.sunset) - NOTICE_BEFORE_SUNSET.total_seconds():
        return []
    message = f"Version {version}, which a request without a version gets, ends on {version.sunset}."
    return [checks.Warning(message, hint="Move DEFAULT_API_VERSION.", id="config.W001")]
