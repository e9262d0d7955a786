"""The user of the session of a page, whatever other credential its request has."""

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import Error
from django.http import HttpRequest


def find_session_user(
    request: HttpRequest, get_user: Callable[[HttpRequest], AbstractBaseUser | AnonymousUser]
) -> AbstractBaseUser | None:
    """The user of the session; None where nobody is signed in, and without the database.

    Args:
        request: Django's own.
        get_user: Django's function that reads the user. That of the middleware remembers the user on the request, and
            the log then names them as the one who asks; `django.contrib.auth.get_user` does not.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not hasattr(request, "session"):
        return None
    try:
        user = get_user(request)
    except Error:
        return None
    return user if isinstance(user, AbstractBaseUser) else None
