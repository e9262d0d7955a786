"""The requests of the fast path, Django's and DRF's around it, its responses and their headers.

Replaces: `WSGIRequest` and `config.api.requests.StrictRequest`. Buys: a path and query that need no decoding are not
decoded; parsers and negotiators are made where a body is read; the view and its request form no reference cycle.

Replaces: `django.http.response.ResponseHeaders`. Buys: a response has a score of headers, each of which Django encodes
and decodes. Names are known here, and values of plain ASCII are taken as they are.

Replaces: `rest_framework.response.Response`. Buys: making one takes as long as rendering its content; and a
response whose renderer context holds the response is a reference cycle, which only the garbage collector frees.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import ref
from wsgiref.types import WSGIEnvironment

from django.core.handlers.wsgi import LimitedStream, WSGIRequest
from django.http import HttpResponse, QueryDict, SimpleCookie
from django.http.response import ResponseHeaders
from django.urls import ResolverMatch
from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import APIException
from rest_framework.request import Empty, WrappedAttributeError
from rest_framework.response import Response
from rest_framework.views import APIView

from config.api.principal import Principal
from config.api.requests import StrictRequest, select_parser
from config.http.errors import DomainError
from config.http.json import to_json
from config.http.middleware import SECRET_PARAMETER
from config.http.url_map import View

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
        environ: WSGIEnvironment,
        match: ResolverMatch,
        view: View,
        view_kwargs: Mapping[str, object],
    ) -> None:
        self.environ = self.META = environ
        self.path = self.path_info = environ["PATH_INFO"]
        self.method = environ["REQUEST_METHOD"]
        self.resolver_match = match
        self.view, self.view_kwargs = view, view_kwargs
        if environ.get("CONTENT_TYPE"):
            self._set_content_type_params(environ)
        else:
            self.content_type, self.content_params = "", {}
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

    # A weak reference: to a view that outlives its request.
    _view: Callable[[], APIView]
    _user: object
    _auth: Principal | None

    def __init__(self, request: Any, view: APIView) -> None:
        self._request, self._view = request, ref(view)
        self._data = self._files = self._full_data = self._content_type = self._stream = Empty
        # Attributes that are read often, and found by DRF only after a look at the wrapper.
        self.META, self.method, self.path = request.META, request.method, request.path
        self.path_info = request.path_info
        self.authenticators = view.get_authenticators()

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
        except AttributeError as error:
            # The attributes that this is called for would seem to be missing.
            raise WrappedAttributeError(str(error)) from error
        self._not_authenticated()

    @StrictRequest.user.getter
    def user(self) -> object:
        if "_user" not in self.__dict__:
            self._authenticate()
        return self._user

    @StrictRequest.auth.getter
    def auth(self) -> Principal | None:
        if "_auth" not in self.__dict__:
            self._authenticate()
        return self._auth

    def _load_data_and_files(self) -> None:
        """DRF's, but for forms, which no parser of the API takes."""
        if self._data is Empty:
            self._data = self._full_data = {}
            self._files = MultiValueDict()
            view = self._view()
            parser = select_parser(self, view.get_parsers())
            self._data = self._full_data = parser.parse(self.stream, self.content_type, {"view": view})


# The service's own.
@lru_cache(maxsize=256)
def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


class FastHeaders(ResponseHeaders):
    _store: dict[str, tuple[str, str]]

    def __setitem__(self, name: str, value: Any) -> None:
        # Django would take it as it is.
        if type(value) is str and value.isascii() and "\n" not in value and "\r" not in value and _is_plain(name):
            self._store[name.lower()] = (name, value)
        else:
            super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        return str(name).lower() in self._store

    def get(self, name: str, default: Any = None) -> Any:
        found = self._store.get(name.lower())
        return default if found is None else found[1]

    def items(self) -> Any:
        return self._store.values()


def set_default_headers(response: HttpResponse, headers: ResponseHeaders) -> None:
    """`config.http.headers.set_default_headers`, for headers that were made before."""
    response.headers._store = headers._store | response.headers._store


_BLANK = vars(Response())


class FastResponse(Response):
    def __init__(
        self, data: object = None, status: int = 200, *, headers: dict[str, str] | None = None, **options: object
    ) -> None:
        self.__dict__.update(
            _BLANK,
            headers=FastHeaders(headers or {}),
            # As `SimpleCookie()`, without a look at what it might be filled from.
            cookies=SimpleCookie.__new__(SimpleCookie),
            _container=[b""],
            _resource_closers=[],
            _post_render_callbacks=[],
            data=data,
            status_code=status,
            **options,
        )

    @property
    def rendered_content(self) -> bytes:
        """DRF's, for what is rendered as JSON, whichever of its renderers was chosen."""
        if self.data is None:
            return b""
        self.headers["Content-Type"] = self.content_type or self.accepted_renderer.media_type
        return to_json(self.data)

    @property
    def content(self) -> bytes:
        return b"".join(self._container) if self._is_rendered else Response.content.fget(self)

    @content.setter
    def content(self, value: object) -> None:
        if type(value) is bytes:
            # Django does the same, after it has checked for other types.
            self._container, self._is_rendered = [value], True
            self.__dict__.pop("text", None)
        else:
            Response.content.fset(self, value)
