"""The cookie of the admin's sign-in, for the browsable API."""

from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request

from config.api.principal import ALL_SCOPES, Principal

_django = SessionAuthentication()


def resolve(request: Request) -> Principal | None:
    """The session's user, or None without a session.

    Raises:
        rest_framework.exceptions.PermissionDenied: the request is unsafe and fails the CSRF check.
    """
    found = _django.authenticate(request)
    return Principal(found[0], ALL_SCOPES, "session") if found else None
