"""Which version of the API a request asks for, by path, query and Accept header, and the notice of the response.

Of the acceptable media types the one of the highest `q` wins, then the first (RFC 9110, section 12.5.1).
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.urls.converters import StringConverter
from django.utils.http import http_date
from rest_framework.request import Request
from rest_framework.versioning import BaseVersioning

from config.api.versions.table import Status, Version, midnight
from config.api.versions.usage import uses
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.headers import Element, parse_elements, quote_address, set_headers, vary_on
from config.http.media_types import HTML, JSON, JSON_API, PROBLEM_JSON
from config.http.middleware import Middleware, split_query
from config.http.request_state import get_state

_VENDOR_JSON = re.compile(rf"application/vnd\.{re.escape(settings.API_VENDOR)}\.v(?P<version>[0-9].*)\+json")


class MediaRange(NamedTuple):
    """One element of an Accept header.

    Attributes:
        media_type: in lower case; may be `*/*` or end in `/*`.
        quality: its `q`, 1.0 when it has none.
        version: the number that a JSON type names, as it was sent.
    """

    media_type: str
    quality: float
    version: str | None

    @property
    def is_json(self) -> bool:
        """Whether it names `application/json`, which is what the answer will say."""
        return self.media_type in {JSON, PROBLEM_JSON, JSON_API} or bool(_VENDOR_JSON.fullmatch(self.media_type))


class Choice(NamedTuple):
    """The result of negotiating an Accept header.

    Attributes:
        media_type: of the response; None if the client accepts none that we have.
        version: the one that the chosen type names; without a type, a requested one that does not exist.
    """

    media_type: str | None
    version: str | None


def _get_version(element: Element) -> str | None:
    if element.name in {JSON, JSON_API}:
        given = element.parameters.get("version")
        return ", ".join(dict.fromkeys(given)) if given else None
    vendor = _VENDOR_JSON.fullmatch(element.name)
    return vendor["version"] if vendor else None


def choose_media_type(header: str, available: tuple[str, ...] = (JSON, HTML)) -> Choice:
    """Which of the available media types answers, and which version of the API the header asks for by it.

    A range that names an unknown version can be met as little as an unknown type: the next one is taken.
    """
    return _choose(header or "*/*", available)


def prefers_problem_json(header: str) -> bool:
    """Whether an error is sent as problem details: the client accepts them, and prefers nothing else that we have."""
    return choose_media_type(header, (JSON, HTML, PROBLEM_JSON)).media_type == PROBLEM_JSON


# Clients send the same few headers over and over; the longest one has 8 KiB (config.http.request_limits).
@lru_cache(maxsize=512)
def _choose(header: str, available: tuple[str, ...]) -> Choice:
    numbers = {None, *get_versions()}
    given = [MediaRange(each.name, each.quality, _get_version(each)) for each in parse_elements(header)]
    candidates = [MediaRange(media_type, 1.0, None) for media_type in available]
    candidates += [one for one in given if one.is_json and JSON in available]
    weighed = [(_weight(candidate, given), candidate) for candidate in candidates]
    acceptable = [(weight, one) for weight, one in weighed if weight > (0, 0) and one.version in numbers]
    if acceptable:
        _, best = max(acceptable, key=lambda pair: pair[0])
        return Choice(best.media_type if best.media_type in available else JSON, best.version)
    return Choice(None, next((one.version for (quality, _), one in weighed if quality), None))


def _weight(candidate: MediaRange, given: list[MediaRange]) -> tuple[float, int]:
    """How welcome a type is: its `q`, then how early it is listed. The most specific range that fits it decides."""
    fitting = [
        (specificity, one.quality, -place)
        for place, one in enumerate(given)
        if (specificity := _specificity(one, candidate))
    ]
    _, quality, place = max(fitting, default=(0, 0.0, 0))
    return (quality, place) if quality else (0.0, 0)


def _specificity(one: MediaRange, candidate: MediaRange) -> int:
    """3 for the type itself, 2 for `application/*`, 1 for `*/*`, 0 for another type."""
    if (one.media_type, one.version) == (candidate.media_type, candidate.version):
        return 3
    main_type = candidate.media_type.partition("/")[0]
    return {f"{main_type}/*": 2, "*/*": 1}.get(one.media_type, 0)


VERSION_PARAMETER = "version"
_NUMBER = "[0-9][^/]*"
_PREFIX = re.compile(rf"/api(?:/v(?P<version>{_NUMBER}))?(?=/|$)")
# Addresses at the root only, unversioned: pages for people, health, OAuth, files. Every other address belongs to the
# API, even one that leads nowhere, since the root is one of the prefixes.
_ROOT_ONLY = re.compile(
    r"/(?:\.well-known|admin|docs|favicon\.ico|health|metrics|oauth|openapi\.json|session|static)(?:/|$)"
)
_OAUTH = re.compile(r"/(?:\.well-known|oauth)(?:/|$)")
_OAUTH_ENDPOINT = re.compile(
    r"/(?:\.well-known/(?:jwks\.json|oauth-authorization-server)|oauth/(?:token|revoke|introspect))"
)


class VersionConverter(StringConverter):
    """What follows `/api/v` in an address of the URL map; `/api/versions` is none."""

    regex = _NUMBER


def get_prefix(path: str) -> str:
    """The part of a path before the resource: `/api/v1`, `/api` or nothing."""
    found = _PREFIX.match(path)
    return found[0] if found else ""


def strip_prefix(path: str) -> str:
    """The path of a resource, the same under every prefix."""
    return path.removeprefix(get_prefix(path))


def parse_version(path: str) -> str | None:
    found = _PREFIX.match(path)
    return found["version"] if found else None


def is_versioned(path: str) -> bool:
    return not _ROOT_ONLY.match(path)


def is_oauth(path: str) -> bool:
    """Whether `Authorization: Basic` holds a client's secret here, and is no credential of a user."""
    return bool(_OAUTH.match(path))


def is_oauth_endpoint(path: str) -> bool:
    """Whether programs speak OAuth here, where errors have OAuth's own bodies. This excludes its pages for people."""
    return bool(_OAUTH_ENDPOINT.fullmatch(path))


_PAGE = "/docs/versions"


@cache
def get_versions() -> Mapping[str, Version]:
    """Every version by its number."""
    return {str(version): version for version in settings.API_VERSIONS}


def get_default_version() -> Version:
    """The version of a request that names none."""
    return get_versions()[str(settings.DEFAULT_API_VERSION)]


def format_supported() -> str:
    return ", ".join(str(version) for version in settings.API_VERSIONS if version.status != Status.RETIRED)


def get_version(request: HttpRequest | Request) -> Version:
    """The version that a request asks for by path, query and Accept header together, or the default.

    A person who asks for none gets the newest: a page has no program behind it that a change could break.

    Raises:
        DomainError: UNSUPPORTED_VERSION for one that there never was, VERSION_CONFLICT for two.
    """
    query = request.GET
    given = query.getlist(VERSION_PARAMETER) if VERSION_PARAMETER in query else [None]
    if len(given) > 1:
        raise invalid(Detail(VERSION_PARAMETER, "Must not be repeated."))
    asked = _asked(parse_version(request.path), given[0], request.META.get("HTTP_ACCEPT", ""))
    return asked or get_default_version()


# Failures are not cached, so that of paths and queries only the numbers of versions are.
@lru_cache(maxsize=512)
def _asked(path: str | None, query: str | None, header: str) -> Version | None:
    asked, (media_type, accepted) = {}, choose_media_type(header)
    for number, status in ((path, 404), (query, 400), (accepted, 406)):
        if number is not None:
            version = get_versions().get(number)
            if version is None:
                raise unsupported(number, status)
            asked[version.number] = version
    if len(asked) > 1:
        raise conflicting(*sorted(asked))
    return next(iter(asked.values()), settings.API_VERSIONS[-1] if media_type == HTML else None)


def conflicting(*numbers: int) -> DomainError:
    message = f"The request names the versions {' and '.join(map(str, numbers))}. Name only one."
    return DomainError(ErrorCode.VERSION_CONFLICT, message)


def retired(version: Version) -> DomainError:
    message = (
        f"Version {version} has been retired. Supported: {format_supported()}. The `Link` header names the successor."
    )
    return DomainError(ErrorCode.VERSION_RETIRED, message)


def unsupported(number: str, status: int) -> DomainError:
    """UNSUPPORTED_VERSION for a version that there never was.

    Args:
        number: as the request names it.
        status: of the response: it depends on where the request names it.
    """
    message = f"Unknown version {number!r}. Supported: {format_supported()}."
    return DomainError(ErrorCode.UNSUPPORTED_VERSION, message, status=status)


def get_response_version(request: HttpRequest) -> Version:
    """The version that an answer names, also one which says that the request asks for two, or for an unknown one."""
    return find_response_version(request) or get_default_version()


def find_response_version(request: HttpRequest) -> Version | None:
    """The version that answers; None for a request that asks for one that there never was."""
    try:
        return get_state(request.META).version or get_version(request)
    except DomainError as problem:
        if problem.code == ErrorCode.UNSUPPORTED_VERSION:
            return None
    except SuspiciousOperation:
        # The query cannot be read.
        pass
    number = parse_version(request.path)
    return get_default_version() if number is None else get_versions().get(number)


class Versioning(BaseVersioning):
    """Gives DRF's `request.version`."""

    def determine_version(self, request: Request, *args: object, **kwargs: object) -> Version:
        version = get_state(request.META).version = get_version(request._request)
        if version.status == Status.RETIRED:
            raise retired(version)
        return version


class VersionMiddleware(Middleware):
    """Every answer under the prefixes tells its version, and the notice of a deprecated one.

    About a version that there never was, an answer names the default, whose notice would be none of the request.
    RFC 9745 (Deprecation), RFC 8594 (Sunset), RFC 5829 (successor-version).
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_versioned(request.path_info):
            version = find_response_version(request)
            if version:
                uses.count(version, get_state(request.META).principal, response.status_code)
            headers, links = _notice(version) if version else ({"API-Version": str(get_default_version())}, "")
            set_headers(response, headers)
            vary_on(response, "Accept")
            if links:
                newest = f"/api/v{settings.API_VERSIONS[-1]}"
                links = f'{links}, <{build_versioned_address(request, newest)}>; rel="successor-version"'
                present = response.headers.get("Link")
                response.headers["Link"] = f"{present}, {links}" if present else links
        return response


@lru_cache(maxsize=16)
def _notice(version: Version) -> tuple[Mapping[str, str], str]:
    """The headers that name a version and give its notice, and the links of it that are the same for every resource.

    They lead people to what changes and when. That page must outlive the version, so it belongs to none.
    """
    headers, relations = {"API-Version": str(version)}, []
    if version.deprecated:
        headers["Deprecation"] = f"@{midnight(version.deprecated):.0f}"
        relations.append("deprecation")
        if version.sunset:
            headers["Sunset"] = http_date(midnight(version.sunset))
            relations.append("sunset")
    return headers, ", ".join(f'<{_PAGE}>; rel="{relation}"' for relation in relations)


def build_versioned_address(request: HttpRequest, prefix: str) -> str:
    """The canonical address of what a request asks for, in a version."""
    query = request.META.get("QUERY_STRING", "")
    if query:
        query, _ = split_query(query, VERSION_PARAMETER)
    return quote_address(prefix + strip_prefix(request.path).rstrip("/"), query)
