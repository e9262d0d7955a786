"""Conditional requests: entity tags, 304 and 412 (RFC 9110, sections 8.8 and 13).

The tag of a single resource is `"<version digest>-<content digest>"`: the first is a digest of the row's version, the
second one of the rendered bytes. Two credentials that get the same bytes get the same tag. `If-Match` compares the
first part, so that it accepts the tag of any representation of the row's current version, in whatever fields, API
version or coding it was read. A response that represents no single row has the second part alone. A content coding
is at the end, because it changes the bytes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from config.http import compression
from config.http.blocking import get_blocking_backend
from config.http.errors import Detail, DomainError, ErrorCode, invalid

_VARIABLES = {"If-Match": "HTTP_IF_MATCH", "If-None-Match": "HTTP_IF_NONE_MATCH"}
_GIVEN_IN = frozenset(_VARIABLES.values())
HAS_CHANGED = "The resource has changed. Fetch the current version and retry."
_ANY = "*"
_WEAK = "W/"
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_READS = frozenset({"GET", "HEAD"})
# Bytes. Digesting this many takes a millisecond or two; compressing them takes up to ten, if they compress badly.
MAX_SHORT_CONTENT = 1024 * 1024
MAX_SHORT_CODED_CONTENT = 128 * 1024
# POST adds to a collection and selects none of its representations, and OPTIONS reads none: the conditions of such
# requests are ignored (section 13.2.1).
_METHODS = _READS | {"PUT", "PATCH", "DELETE"}


def get_version_digest(row: Model, columns: Sequence[str]) -> str:
    """The first part of a row's tags.

    Args:
        row: a model instance.
        columns: one of them changes with every change of the representation.
    """
    label, values = _get_values(type(row), *columns)
    return blake2b(repr((label, *values(row))).encode(), digest_size=8).hexdigest()


@cache
def _get_values(model: type[Model], *columns: str) -> tuple[str, Callable[[Model], tuple[object, ...]]]:
    return model._meta.label, attrgetter(model._meta.pk.attname, *columns)


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The preconditions that a request sets on the current representation.

    Attributes:
        match: the tags of If-Match, one of which must be present; None without the header.
        none_match: the tags of If-None-Match, none of which may be present; None without the header.
    """

    match: Sequence[str] | None = None
    none_match: Sequence[str] | None = None

    def check_match(self, version_digest: str) -> None:
        """Raises DomainError, a PRECONDITION_FAILED, unless If-Match names it, by strong comparison."""
        if self.match is not None and not any(
            tag == _ANY or (_parse_version_digest(tag) == version_digest and not tag.startswith(_WEAK))
            for tag in self.match
        ):
            raise failed_precondition("If-Match", HAS_CHANGED)

    def check(self, version_digest: str) -> None:
        """Raises DomainError, a PRECONDITION_FAILED, unless a row of this version may be written."""
        self.check_match(version_digest)
        if any(tag == _ANY or _parse_version_digest(tag) == version_digest for tag in self.none_match or ()):
            raise failed_precondition("If-None-Match", "The resource exists in a state that this header excludes.")

    def excludes(self, present: str) -> bool:
        """Whether If-None-Match names the tag of the answer, by weak comparison: the client has it already."""
        return any(tag in {_ANY, present} or tag.removeprefix(_WEAK) == present for tag in self.none_match or ())


NO_PRECONDITIONS = Preconditions()


def _parse_version_digest(tag: str) -> str:
    return tag.removeprefix(_WEAK).strip('"').partition("-")[0]


def failed_precondition(header: str, message: str) -> DomainError:
    return DomainError(ErrorCode.PRECONDITION_FAILED, details=[Detail(header, message)])


def parse_preconditions(request: HttpRequest) -> Preconditions:
    """The preconditions of a request.

    If-Modified-Since and If-Unmodified-Since are ignored, as section 13.1 asks where a resource tells no modification
    date: a second is too coarse to tell two writes apart.

    Raises:
        DomainError: VALIDATION_ERROR naming each header that is malformed.
    """
    if request.method not in _METHODS or _GIVEN_IN.isdisjoint(request.META):
        return NO_PRECONDITIONS
    given = {name: request.META.get(variable) for name, variable in _VARIABLES.items()}
    tags = {name: None if value is None else _parse_tags(value) for name, value in given.items()}
    if malformed := [name for name, found in tags.items() if found == ()]:
        message = 'Must be `*`, or entity tags in double quotes, separated by commas: `"a", W/"b"`.'
        raise invalid(*(Detail(name, message) for name in malformed))
    return Preconditions(*tags.values())


def _parse_tags(header: str) -> Sequence[str]:
    """The tags of a header, or its `*`; none where it is malformed. A tag may hold commas (section 8.8.3)."""
    if header.strip(" \t") == _ANY:
        return (_ANY,)
    between = _TAG.split(header)
    separated = all("," in text for text in between[1:-1]) and not any(text.strip(", \t") for text in between)
    return tuple(_TAG.findall(header)) if separated else ()


def finalize_etag(
    request: HttpRequest,
    response: HttpResponse,
    preconditions: Preconditions,
    version_digest: str | None,
    *,
    salt: str = "",
    is_page: bool = False,
) -> None:
    """Gives a rendered response its tag and its coding, or turns it into 304 where the client has it already.

    Args:
        request: of Django or DRF.
        response: the rendered response, which is changed.
        preconditions: of the request; a write has checked them already.
        version_digest: of the row that the response represents, if it represents a single row.
        salt: what the tag depends on besides the bytes.
        is_page: whether the response will be put on a page, which is coded when it is made, and has no tag of its own.

    Raises:
        DomainError: PRECONDITION_FAILED for a read whose If-Match fails.
    """
    coding = None if is_page else compression.choose_coding(request, response)
    is_long = len(response.content) > (MAX_SHORT_CODED_CONTENT if coding else MAX_SHORT_CONTENT)
    run: Any = get_blocking_backend().run if is_long else lambda function: function()
    if _is_representation(request, response, version_digest):
        content = run(lambda: blake2b(f"{salt}\n".encode() + response.content, digest_size=16).hexdigest())
        tag = f'"{"-".join(filter(None, (version_digest, content, coding)))}"'
        response.headers["ETag"] = tag
        if request.method in _READS:
            preconditions.check_match(version_digest or content)
            if not is_page and preconditions.excludes(tag):
                # Section 15.4.5: only headers about the body go; the others bring a stored answer up to date.
                response.status_code, response.content = 304, b""
                del response["Content-Type"]
                return
    if coding:
        run(lambda: compression.compress(response))


def _is_representation(request: HttpRequest, response: HttpResponse, version_digest: str | None) -> bool:
    """Whether the body is what a GET of the resource would answer, and will be again.

    A page of documentation is none, and the answer to the making of a key holds the key, this once.
    """
    if response.headers.get("Content-Type", "").startswith("text/html"):
        return False
    if request.method in _READS:
        return response.status_code == 200
    is_stored = "no-store" not in response.headers.get("Cache-Control", "")
    return bool(version_digest) and response.status_code in {200, 201} and is_stored
