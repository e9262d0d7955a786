"""The form of the service's own paths: the prefix before the resource, and the version in it."""

import re

VERSION_PARAMETER = "version"
_NUMBER = "[0-9][^/]*"
_PREFIX = re.compile(rf"/api(?:/v(?P<version>{_NUMBER}))?(?=/|$)")
# What stands at the root only, unversioned: pages for people, health, OAuth, files. Every other address is one of the
# API's, one that leads nowhere too, since the root is one of the prefixes.
_ROOT_ONLY = re.compile(
    r"/(?:\.well-known|admin|docs|favicon\.ico|health|metrics|oauth|openapi\.json|session|static)(?:/|$)"
)
_OAUTH = re.compile(r"/(?:\.well-known|oauth)(?:/|$)")
_OAUTH_ENDPOINT = re.compile(r"/(?:\.well-known/oauth-authorization-server|oauth/(?:token|revoke|introspect))")


class VersionConverter:
    """What stands behind `/api/v` in an address of the URL map; `/api/versions` is none."""

    regex = _NUMBER

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: object) -> str:
        return str(value)


def get_prefix(path: str) -> str:
    """The part of a path before the resource: `/api/v1`, `/api` or nothing."""
    found = _PREFIX.match(path)
    return found[0] if found else ""


def strip_prefix(path: str) -> str:
    """The path of a resource, the same under every prefix."""
    found = _PREFIX.match(path)
    return path[found.end() :] if found else path


def parse_version(path: str) -> str | None:
    found = _PREFIX.match(path)
    return found["version"] if found else None


def is_versioned(path: str) -> bool:
    return not _ROOT_ONLY.match(path)


def is_oauth(path: str) -> bool:
    """Whether `Authorization: Basic` holds a client's secret here, and is no credential of a user."""
    return bool(_OAUTH.match(path))


def is_oauth_endpoint(path: str) -> bool:
    """Whether programs speak OAuth here, whose own bodies errors have; the pages for people stand beside it."""
    return bool(_OAUTH_ENDPOINT.fullmatch(path))
