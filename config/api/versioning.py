"""Which version of the API a request speaks, and under which prefix it came."""

import re
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.versioning import BaseVersioning

from config.api.errors import DomainError, ErrorCode

_PREFIX = re.compile(r"/api(?:/v(?P<version>[^/]+))?(?=/|$)")
VERSION_HEADER = "API-Version"


def prefix_of(path: str) -> str:
    """The part of a path before the resource: `/api/v1`, `/api` or nothing."""
    found = _PREFIX.match(path)
    return found[0] if found else ""


class Versioning(BaseVersioning):
    """Takes the version from the path; without one it is DEFAULT_API_VERSION."""

    def determine_version(self, request: Request, *args: Any, **kwargs: Any) -> int:
        found = _PREFIX.match(request.path)
        asked = found and found["version"]
        if asked is None:
            return settings.DEFAULT_API_VERSION
        for version in settings.API_VERSIONS:
            if asked == str(version):
                return version
        supported = ", ".join(map(str, settings.API_VERSIONS))
        raise DomainError(
            ErrorCode.UNSUPPORTED_VERSION, f"There is no version {asked!r}. Supported: {supported}.", status=404
        )
