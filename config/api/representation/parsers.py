"""The JSON a request may carry: strict where the standard library is lenient, exact where it rounds."""

import gc
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import IO, Any
from weakref import ref

from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import APIException
from rest_framework.parsers import BaseParser
from rest_framework.request import (
    Empty,
    ForcedAuthentication,
    Request,
    wrap_attributeerrors,
)

from config.api.settings import settings
from config.http import request_limits
from config.http.errors import Detail, DomainError, ErrorCode, invalid

MAX_DEPTH = 32
MAX_NUMBER_CHARACTERS = 40
MAX_EXPONENT = 20

# One without its end matches too: else each quote in it would be tried as a beginning.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


@dataclass(frozen=True, slots=True)
class UnusableNumber:
    """A number too long or too far out to be converted: `int()` and `Decimal` take minutes over some.

    The parser leaves it in place as it was sent, so that the field it stands in can refuse it by name.
    """

    token: str


class _MalformedError(ValueError):
    pass


def _integer(token: str) -> int | UnusableNumber:
    return int(token) if len(token) <= MAX_NUMBER_CHARACTERS else UnusableNumber(token)


def _decimal(token: str) -> Decimal | UnusableNumber:
    exponent = token.lower().partition("e")[2]
    if len(token) > MAX_NUMBER_CHARACTERS or abs(int(exponent or 0)) > MAX_EXPONENT:
        return UnusableNumber(token)
    return Decimal(token)


def _constant(token: str) -> Any:
    raise _MalformedError(f"{token} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _MalformedError("an object has two members of the same name")
    return members


def _too_deep(body: bytes) -> bool:
    """Whether brackets nest too deeply; each round takes away the innermost ones, in linear time."""
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    # Those that are left without being a pair are the decoder's to complain about.
    return b"[]" in brackets


def malformed(reason: str) -> DomainError:
    return DomainError(ErrorCode.MALFORMED_JSON, f"The body is not a JSON object: {reason}.")


def parse(body: bytes) -> dict[str, Any]:
    """Reads a request body.

    Returns the object at its top, with every fractional number as a Decimal.

    Raises:
        DomainError: MALFORMED_JSON for everything that contract section 5 calls malformed.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        raise malformed("it starts with a byte order mark (RFC 8259, section 8.1)")
    if not body.strip(b" \t\r\n"):
        raise malformed("it is empty")
    # Few brackets cannot nest deeply: the count is for the rare body that has many.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _too_deep(body):
        raise malformed(f"it is nested over {MAX_DEPTH} levels deep")
    # While a body is decoded everything that is made stays: looking for garbage in it trebles the time.
    gc.disable()
    try:
        value = _decoder.decode(body.decode())
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None
    except RecursionError:
        raise malformed(f"it is nested over {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except _MalformedError as error:
        raise malformed(str(error)) from None
    finally:
        gc.enable()
    if not isinstance(value, dict):
        raise malformed("its top is something else")
    return value


_decoder = json.JSONDecoder(
    parse_int=_integer, parse_float=_decimal, parse_constant=_constant, object_pairs_hook=_unique
)


class JSONParser(BaseParser):
    media_type = "application/json"
    methods = frozenset({"POST", "PUT", "PATCH"})

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body is longer than {limit} bytes.")
        return parse(body)


class MergePatchParser(JSONParser):
    """RFC 7396."""

    media_type = "application/merge-patch+json"
    methods = frozenset({"PATCH"})


# RFC 9110, section 8.3.1: a media type and its parameters, each of which may be empty.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_TOKEN})=({_TOKEN}|"[^"\\]*")')


@lru_cache(maxsize=64)
def _media_type_of(header: str) -> tuple[str, list[str]] | None:
    """The media type and its charsets, in lower case; None when a parameter is none. No value of ours holds a `;`."""
    media_type, *parts = (part.strip(" \t").lower() for part in header.split(";"))
    parameters = [_PARAMETER.fullmatch(part) for part in parts if part]
    if None in parameters:
        return None
    return media_type, [found[2].strip('"') for found in parameters if found and found[1] == "charset"]


class StrictRequest(Request):
    """DRF's request, but no body is an empty body and not `{}`, and every header about the body is obeyed.

    Args:
        request: Django's.
        view: that is asked. It holds the request, which does not hold it: what goes round in a ring is kept until the
            garbage collector comes.
    """

    _view: Any
    _user: Any
    _auth: Any

    def __init__(self, request: Any, view: Any) -> None:
        self._request, self._view = request, ref(view)
        self._data = self._files = self._full_data = self._content_type = self._stream = Empty
        # What is looked at again and again, and found by DRF only after a look at the wrapper.
        self.META, self.method, self.path = request.META, request.method, request.path
        self.path_info = request.path_info
        self.authenticators = view.get_authenticators()
        if hasattr(request, "_force_auth_user"):
            # Of a test, by DRF's `force_authenticate`.
            self.authenticators = (ForcedAuthentication(request._force_auth_user, request._force_auth_token),)

    @property
    def parsers(self) -> Any:
        return self._view().get_parsers()

    @property
    def negotiator(self) -> Any:
        return self._view().get_content_negotiator()

    @property
    def parser_context(self) -> dict[str, Any]:
        encoding = self._request.encoding or settings.DEFAULT_CHARSET
        return {**self._view().get_parser_context(self._request), "request": self, "encoding": encoding}

    @property
    def content_type(self) -> str:
        return request_limits.content_type(self.META)

    def authenticate(self) -> None:
        """Finds out who is calling.

        Raises:
            DomainError, APIException: the credential is no good.
        """
        try:
            for authenticator in self.authenticators:
                found = authenticator.authenticate(self)
                if found is not None:
                    self._authenticator = authenticator
                    self.user, self.auth = found
                    return
        except (DomainError, APIException):
            # Who asks again, as a page does, must not have it tried again.
            self._not_authenticated()
            raise
        self._not_authenticated()

    # What DRF calls where nobody has asked yet.
    _authenticate = authenticate

    @Request.user.getter
    def user(self) -> Any:
        if "_user" not in self.__dict__:
            with wrap_attributeerrors():
                self.authenticate()
        return self._user

    @Request.auth.getter
    def auth(self) -> Any:
        if "_auth" not in self.__dict__:
            with wrap_attributeerrors():
                self.authenticate()
        return self._auth

    def _load_data_and_files(self) -> None:
        """DRF's, but for forms, which no parser here takes."""
        if self._data is Empty:
            # Left empty until the body is read: a page that renders the error asks for the data again.
            self._data = self._full_data = {}
            self._files = MultiValueDict()
            stream, content_type = self.stream, self.content_type
            if stream is None:
                raise malformed("it is empty")
            parser = self._parser(content_type)
            self._data = self._full_data = parser.parse(stream, content_type, self.parser_context)

    def _parser(self, content_type: str) -> BaseParser:
        if "HTTP_CONTENT_ENCODING" in self.META:
            raise self._unsupported(
                "Bodies are taken as they are, without Content-Encoding.", "Accept-Encoding", "identity"
            )
        if "HTTP_CONTENT_RANGE" in self.META:
            # It would replace the whole by the part (RFC 9110, section 14.5).
            raise invalid(Detail("Content-Range", "Parts of a representation are not taken; PATCH changes one."))
        known = {parser.media_type: parser for parser in self.parsers if self.method in parser.methods}
        found = _media_type_of(content_type)
        if found is None or found[0] not in known:
            raise self._unsupported(f"Content-Type must be {' or '.join(known)}.", "Accept", ", ".join(known))
        media_type, charsets = found
        if any(charset != "utf-8" for charset in charsets):
            raise self._unsupported("The charset must be UTF-8.", "Accept", ", ".join(known))
        return known[media_type]

    def _unsupported(self, message: str, header: str, value: str) -> DomainError:
        if self.method == "PATCH" and header == "Accept":
            header = "Accept-Patch"  # RFC 5789, section 2.2
        return DomainError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message, headers={header: value})
