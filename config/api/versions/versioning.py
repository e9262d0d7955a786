"""Which version of the API a request speaks, and the notice that its answer gives."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.utils.http import http_date
from rest_framework.request import Request
from rest_framework.versioning import BaseVersioning

from config.api.versions.accept import choose_media_type
from config.api.versions.paths import VERSION_PARAMETER, is_versioned, parse_version, strip_prefix
from config.api.versions.table import Status, Version, midnight
from config.api.versions.usage import uses
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.headers import set_headers, vary_on
from config.http.middleware import GetResponse
from config.http.paths import quote_address

_PAGE = "/docs/versions"


def get_versions() -> Mapping[str, Version]:
    return _get_versions(tuple(settings.API_VERSIONS))


@lru_cache(maxsize=2)
def _get_versions(versions: tuple[Version, ...]) -> Mapping[str, Version]:
    return {str(version): version for version in versions}


def get_default_version() -> Version:
    """What a request gets that names no version."""
    return get_versions()[str(settings.DEFAULT_API_VERSION)]


def format_supported() -> str:
    return ", ".join(str(version) for version in settings.API_VERSIONS if version.status != Status.RETIRED)


def get_version(request: HttpRequest | Request) -> Version:
    """The version that a request asks for by path, query and Accept header together, or the default.

    Raises:
        DomainError: UNSUPPORTED_VERSION for one that there never was, VERSION_CONFLICT for two.
    """
    query = request.GET
    given = query.getlist(VERSION_PARAMETER) if VERSION_PARAMETER in query else [None]
    if len(given) > 1:
        raise invalid(Detail(VERSION_PARAMETER, "Must not be repeated."))
    versions = tuple(settings.API_VERSIONS)
    return (
        _asked(parse_version(request.path), given[0], request.META.get("HTTP_ACCEPT", ""), versions)
        or get_default_version()
    )


# Of what fails nothing is kept, so that of paths and queries only numbers of versions are.
@lru_cache(maxsize=512)
def _asked(path: str | None, query: str | None, header: str, versions: tuple[Version, ...]) -> Version | None:
    asked, accepted = {}, choose_media_type(header).version
    for number, status in ((path, 404), (query, 400), (accepted, 406)):
        if number is not None:
            version = _get_versions(versions).get(number)
            if version is None:
                raise unsupported(number, status)
            asked[version.number] = version
    if len(asked) > 1:
        message = f"The request asks for the versions {' and '.join(map(str, sorted(asked)))}; name one."
        raise DomainError(ErrorCode.VERSION_CONFLICT, message)
    return next(iter(asked.values()), None)


def unsupported(number: str, status: int) -> DomainError:
    message = f"There is no version {number!r}. Supported: {format_supported()}."
    return DomainError(ErrorCode.UNSUPPORTED_VERSION, message, status=status)


def get_response_version(request: HttpRequest) -> Version:
    """The version that an answer names, also one which says that the request asks for none or for two."""
    try:
        return getattr(request, "api_version", None) or get_version(request)
    except (DomainError, SuspiciousOperation):
        return get_versions().get(parse_version(request.path) or "", get_default_version())


class Versioning(BaseVersioning):
    """Gives DRF's `request.version`."""

    def determine_version(self, request: Request, *args: Any, **kwargs: Any) -> Version:
        asked: Any = request._request
        version = asked.api_version = get_version(asked)
        if version.status == Status.RETIRED:
            message = (
                f"Version {version} has been retired. Supported: {format_supported()}; see `Link` for the successor."
            )
            raise DomainError(ErrorCode.VERSION_RETIRED, message)
        return version


class VersionMiddleware:
    """Every answer under the prefixes tells its version, and the notice of a deprecated one.

    RFC 9745 (Deprecation), RFC 8594 (Sunset), RFC 5829 (successor-version).
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if is_versioned(request.path_info):
            version = get_response_version(request)
            uses.count(version, getattr(request, "principal", None), response.status_code)
            headers, links = _notice(version)
            set_headers(response, headers)
            vary_on(response, "Accept")
            if links:
                newest = _prefix_of_newest(tuple(settings.API_VERSIONS))
                links = f'{links}, <{build_address(newest, request)}>; rel="successor-version"'
                present = response.headers.get("Link")
                response.headers["Link"] = f"{present}, {links}" if present else links
        return response


@lru_cache(maxsize=16)
def _notice(version: Version) -> tuple[Mapping[str, str], str]:
    """The headers that name a version and give its notice, and the links of it that are the same for every resource.

    They lead people to what changes and when; that page must outlive the version, so it stands beside the versions.
    """
    headers, relations = {"API-Version": str(version)}, []
    if version.deprecated:
        headers["Deprecation"] = f"@{midnight(version.deprecated):.0f}"
        relations.append("deprecation")
        if version.sunset:
            headers["Sunset"] = http_date(midnight(version.sunset))
            relations.append("sunset")
    return headers, ", ".join(f'<{_PAGE}>; rel="{relation}"' for relation in relations)


@lru_cache(maxsize=2)
def _prefix_of_newest(versions: tuple[Version, ...]) -> str:
    return f"/api/v{max(version.number for version in versions)}"


def build_address(prefix: str, request: HttpRequest) -> str:
    """What a request asks for, in the version of a prefix: the canonical address."""
    query = request.META.get("QUERY_STRING", "")
    if query:
        parts = filter(None, query.split("&"))
        if VERSION_PARAMETER in query or "%" in query:
            parts = filter(lambda part: unquote_plus(part.partition("=")[0]) != VERSION_PARAMETER, parts)
        query = "&".join(parts)
    return quote_address(prefix + strip_prefix(request.path).rstrip("/"), query)
