"""The requests of the fast path: Django's, and DRF's around it.

Replaces: `WSGIRequest` and `config.api.requests.StrictRequest`. Buys: a path and query that need no decoding are not
decoded; parsers and negotiators are made where a body is read; the view and its request form no reference cycle.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from weakref import ref

from django.conf import settings
from django.core.handlers.wsgi import LimitedStream, WSGIRequest
from django.http import QueryDict
from django.urls import ResolverMatch
from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import APIException
from rest_framework.request import Empty, ForcedAuthentication, wrap_attributeerrors

from config.api.requests import StrictRequest, select_parser
from config.http.errors import DomainError
from config.http.middleware import SECRET_PARAMETER

# Queries without anything to decode, and without a secret that must be taken out first.
_PLAIN_QUERY = re.compile(rf"(?!.*{SECRET_PARAMETER})(?:[\w.~-]+=[\w.~-]*(?:&|\Z)){{0,50}}(?<!&)", re.ASCII)
_NO_QUERY = QueryDict()


class FastRequest(WSGIRequest):
    """Django's request, made of an environment whose path needs no decoding, together with its view.

    Args:
        environ: a WSGI environment, of which no copy is made.
        match: the match of the path.
        view: the view at the path, as the fast path runs it.
        view_kwargs: the keyword arguments of the view.
    """

    def __init__(
        self: Any,
        environ: dict[str, Any],
        match: ResolverMatch,
        view: Callable[..., Any],
        view_kwargs: Mapping[str, Any],
    ) -> None:
        self.environ = self.META = environ
        self.path = self.path_info = environ["PATH_INFO"]
        self.method = environ["REQUEST_METHOD"]
        self.resolver_match = match
        self.view, self.view_kwargs = view, view_kwargs
        self._set_content_type_params(environ)
        self._read_started = False
        if _PLAIN_QUERY.fullmatch(query := environ.get("QUERY_STRING", "")):
            self.GET = parse_plain_query(query)

    @cached_property
    def _stream(self) -> LimitedStream:  # type: ignore[override]
        # Only where a body is read.
        return LimitedStream(self.environ["wsgi.input"], int(self.environ.get("CONTENT_LENGTH") or 0))


def parse_plain_query(query: str) -> QueryDict:
    """The QueryDict of a query with nothing to decode, in a fraction of the time that the standard library takes."""
    if not query:
        return _NO_QUERY
    values: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        values.setdefault(name, []).append(value)
    made = QueryDict.__new__(QueryDict)
    dict.update(made, values)
    made.encoding, made._mutable = "utf-8", False
    return made


class FastAPIRequest(StrictRequest):
    """DRF's request, which does not hold the view that holds it.

    Args:
        request: Django's.
        view: the view that is asked.
    """

    _view: Any
    _user: Any
    _auth: Any

    def __init__(self, request: Any, view: Any) -> None:
        self._request, self._view = request, ref(view)
        self._data = self._files = self._full_data = self._content_type = self._stream = Empty
        # Attributes that are read often, and found by DRF only after a look at the wrapper.
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

    def _authenticate(self) -> None:
        try:
            for authenticator in self.authenticators:
                found = authenticator.authenticate(self)
                if found is not None:
                    self._authenticator = authenticator
                    self.user, self.auth = found
                    return
        except (DomainError, APIException):
            self._not_authenticated()
            raise
        self._not_authenticated()

    @StrictRequest.user.getter
    def user(self) -> Any:
        if "_user" not in self.__dict__:
            with wrap_attributeerrors():
                self._authenticate()
        return self._user

    @StrictRequest.auth.getter
    def auth(self) -> Any:
        if "_auth" not in self.__dict__:
            with wrap_attributeerrors():
                self._authenticate()
        return self._auth

    def _load_data_and_files(self) -> None:
        """DRF's, but for forms, which no parser of the API takes."""
        if self._data is Empty:
            self._data = self._full_data = {}
            self._files = MultiValueDict()
            parser = select_parser(self, self.parsers)
            self._data = self._full_data = parser.parse(self.stream, self.content_type, self.parser_context)
