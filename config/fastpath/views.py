"""The way of a request of a program: its stack of middlewares, then a viewset on compiled queries and serializers.

Replaces: `WSGIHandler` and the URL resolver. Buys: a fifth of a read. It uses the reference's views and headers;
tests/system/differential compares them.

Replaces: the actions and the dispatch of `config.api.viewsets.ResourceViewSet`, by a subclass of each viewset of
FAST_PATH_VIEWSETS. Buys: nine tenths of the function calls of a request.

It goes around hooks of Django REST Framework: a test tells where a viewset of that setting overrides one. Any other
viewset runs on the reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar
from wsgiref.types import WSGIEnvironment

from django.conf import settings
from django.db import InternalError, OperationalError, router
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, ResolverMatch, resolve
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer

from config.api.handlers import build_api_stack
from config.api.listing.filters import parse_ordering
from config.api.representation.renderers import JSONRenderer
from config.api.representation.serializers import ResourceSerializer
from config.api.versions.versioning import choose_media_type, is_versioned
from config.api.views import VARY, ConventionsMixin
from config.api.viewsets import READS, ResourceViewSet, parse_id
from config.api.writing.idempotency import IdempotencyKey, build_key, get_operation, parse_header, parse_key
from config.fastpath import inserts, queries
from config.fastpath.http import FastAPIRequest, FastHeaders, FastRequest, FastResponse, set_default_headers
from config.fastpath.serializers import accelerate as accelerate_serializer
from config.fastpath.serializers import get_renderer
from config.http.errors import DomainError, not_found
from config.http.headers import vary_on
from config.http.media_types import JSON, MEDIA_TYPES
from config.http.middleware import GetResponse, get_security_headers
from config.http.request_state import get_state
from config.http.url_map import View
from config.postgresql.transactions import must_run_again

_JSON_RENDERER = JSONRenderer()

if TYPE_CHECKING:
    # The class that the mixin is combined with.
    _ViewSet = ResourceViewSet
else:
    _ViewSet = object


class FastViewSet(_ViewSet):
    """ResourceViewSet, with some methods replaced.

    Attributes:
        adds_alone: whether a new row is all that a POST adds, by values of its body alone.
    """

    adds_alone: ClassVar[bool]
    headers: Mapping[str, str]
    wanted_answer: Mapping[str, str] | None = None

    # --- Requests and responses: one class for each address; a request and a response that do not lead back to the view

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> Response:
        self.args, self.kwargs = args, kwargs
        self.request = api_request = self.initialize_request(request, *args, **kwargs)
        headers: dict[str, str] = {}
        self.headers = headers
        try:
            self.initial(api_request, *args, **kwargs)
            # A method that the view does not have has been refused.
            response = getattr(self, str(request.method).lower())(api_request, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - the exception handler tells faults from refusals
            response = self.handle_exception(problem)
        finalized: Response = self.finalize_response(api_request, response, *args, **kwargs)
        return finalized

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> FastAPIRequest:
        method = str(request.method).lower()
        self.action = "metadata" if method == "options" else self.action_map.get(method)
        return FastAPIRequest(request, self)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[JSONRenderer, str]:
        return _JSON_RENDERER, JSONRenderer.media_type

    def build_response(self, data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return FastResponse(data, status, headers=dict(headers) if headers else None)

    def finalize_response(self, request: Request, response: Response, *args: object, **kwargs: object) -> Response:
        if self.headers:
            # The view added headers to all of its responses (DRF's).
            self.headers = {**self.default_response_headers, **self.headers}
            finalized: Response = super().finalize_response(request, response, *args, **kwargs)
            return finalized
        response.accepted_renderer = request.accepted_renderer
        response.accepted_media_type = request.accepted_media_type
        response.renderer_context = {"view": self, "args": self.args, "kwargs": self.kwargs, "request": self.request}
        # Any: mypy takes no subclass of an untyped class for hashable.
        view_class: Any = self.__class__
        set_default_headers(response, _get_headers(view_class, self.cache_control))
        vary_on(response, *VARY)
        response.add_post_render_callback(partial(self.finalize_etag, request))
        return response

    # --- Reads

    def list(self, request: Request, *args: object, **kwargs: object) -> Response:
        ordering = parse_ordering(self.parameters, self.sortable, self.filterset_class)
        filters = self.filter_values = self.filterset_class.parse(self.parameters)
        query = None
        is_plain = not (self.parameters.problems or self.parameters.uses_later or self.included)
        if is_plain and self.principal is not None:
            renderer = get_renderer(self.get_serializer_class(), request.version, self.field_names)
            attributes = renderer.attributes if renderer else None
            query = queries.get_list_query(_get_prototype(self), ordering, filters, attributes)
        if query is None:
            response: Response = super().list(request, *args, **kwargs)
            return response
        # Not the view's own, which would be a reference cycle.
        paginator = self.pagination_class()
        try:
            page = paginator.paginate(query.bind(_get_values(self)), self)
        except DomainError:
            self.check_parent()
            raise
        if not page:
            self.check_parent()
        paginated: Response = paginator.get_paginated_response(self.represent(page))
        return paginated

    def get_object(self, *, lock: bool = False) -> Model:
        query = None if lock or self.principal is None else queries.get_object_query(_get_prototype(self))
        if query is None:
            return super().get_object(lock=lock)
        rows = query.fetch_instances(id=parse_id(str(self.kwargs["id"])), **_get_values(self))
        if not rows:
            raise not_found()
        self.check_object_permissions(self.request, rows[0])
        return rows[0]

    def check_parent(self) -> None:
        if not self.parent_field:
            return
        is_read = self.request.method in READS
        query = queries.get_parent_query(_get_prototype(self)) if is_read else None
        if query is None:
            super().check_parent()
        elif not query.fetch_instances(**_get_values(self)):
            raise not_found()

    # --- A POST that only adds one row is one statement, sent when its response is made

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        if self.action == "create":
            self.wanted_answer = get_state(request.META).answer_wanted = self.get_wanted_answer(request)
        super().initial(request, *args, **kwargs)

    def get_wanted_answer(self, request: Request) -> Mapping[str, str] | None:
        """The key whose response is read with the credential."""
        try:
            key = parse_header(request, self.idempotency)
        except DomainError:
            # Raised once the caller is known.
            return None
        return None if key is None else {"operation": get_operation(request), "key": key}

    def create(self, request: Request, *args: object, **kwargs: object) -> Response:
        if self.is_dry_run or self.is_bulk:
            tried: Response = super().create(request, *args, **kwargs)
            return tried
        data, wanted = request.data, self.wanted_answer
        key = build_key(request, **wanted) if wanted else parse_key(request, self.idempotency)
        if key and self.principal is not None and (answer := inserts.take_answer(get_state(request.META), key)):
            replayed: Response = self.build_response(*key.build_replay(answer))
            return replayed
        response = self.insert(data, key) if self.adds_alone and self.principal is not None else None
        if response is None:
            response = super().create(request, *args, **kwargs)
        return response

    def insert(self, data: Mapping[str, object], key: IdempotencyKey | None) -> Response | None:
        """The response to a row that was added by one statement; None where the reference must try."""
        serializer_class = self.get_serializer_class()
        if not _get_fields_in_transaction(serializer_class).isdisjoint(data):
            return None
        serializer = accelerate_serializer(serializer_class)(data=data, context=self.get_serializer_context())
        # If the key is in use, the response says that, and not what is wrong with this body.
        if not serializer.is_valid(raise_exception=key is None):
            return None
        values, model = serializer.validated_data, serializer_class.Meta.model
        # Its fields hold the serializer, which holds the request: a cycle, which only the garbage collector would find.
        vars(serializer).pop("fields", None)
        alias = router.db_for_write(model)
        try:
            pending = inserts.reserve(model, values, alias)
            response: Response = self.respond_created(pending.row)
            guard = inserts.get_key_guard(key, response, pending.row) if key else inserts.get_user_guard(self.principal)
            if pending.commit(guard):
                return response
        except (OperationalError, InternalError) as error:
            if not must_run_again(error):
                raise
        # The row is not there, and gives no entity tag.
        self.row = self.version_digest = None
        return None

    def get_line_serializer(self) -> ResourceSerializer:
        accelerated = accelerate_serializer(self.get_serializer_class())
        serializer: ResourceSerializer = accelerated(data={}, context=self.get_serializer_context())
        return serializer


@cache
def accelerate(view: View) -> View | None:
    """A view function of the API as the fast path runs it; None for one that runs on the reference alone."""
    view_class: Any = getattr(view, "cls", object)
    if not issubclass(view_class, ResourceViewSet):
        is_plain = issubclass(view_class, ConventionsMixin) and not getattr(view_class, "streams", False)
        return view if is_plain else None
    if f"{view_class.__module__}.{view_class.__qualname__}" not in settings.FAST_PATH_VIEWSETS:
        return None
    actions: dict[str, str] = dict(view.actions)  # type: ignore[attr-defined]
    if "get" in actions:
        actions.setdefault("head", actions["get"])
    methods = {method: property(attrgetter(action)) for method, action in actions.items()}
    attributes = {
        "__doc__": view_class.__doc__,
        "__module__": view_class.__module__,
        "action_map": actions,
        "reference": view_class,
        "adds_alone": adds_alone(view_class),
    }
    bases = (FastViewSet, view_class)
    bound: Any = type(view_class.__name__, bases, {**attributes, **view.initkwargs, **methods})  # type: ignore[attr-defined]
    bound.allowed_methods = [name.upper() for name in bound.http_method_names if hasattr(bound, name)]

    def run(request: HttpRequest, *args: object, **kwargs: object) -> Response:
        return bound().dispatch(request, *args, **kwargs)

    return run


# A view may have another `cache_control` for each of its responses.
@lru_cache(maxsize=512)
def _get_headers(view_class: Any, cache_control: str) -> FastHeaders:
    return FastHeaders({"Allow": ", ".join(view_class.allowed_methods), "Cache-Control": cache_control})


def _get_prototype(view: ResourceViewSet) -> ResourceViewSet:
    principal = view.principal
    kind, role = principal.kind, principal.user.role
    return queries.get_prototype(view.reference, view.action, role, kind, view.chosen_fields)


def _get_values(view: ResourceViewSet) -> dict[str, object]:
    """The values of the prototype's bind parameters."""
    return {"user_id": view.principal.user.id, "parent_id": view.parent_id}


def adds_alone(view_class: type[ResourceViewSet]) -> bool:
    """Whether a new row is all that a POST adds, by values of its body alone."""
    is_stock = view_class.perform_create is ResourceViewSet.perform_create
    return is_stock and view_class.parent_field is None and view_class.serializer_class.create is ModelSerializer.create


@cache
def _get_fields_in_transaction(serializer_class: Any) -> frozenset[str]:
    """The fields that may not be validated outside of a transaction."""
    fields = serializer_class().fields
    return frozenset(name for name, field in fields.items() if getattr(field, "needs_transaction", False))


# --- From an address to its view

_NUMBER = re.compile(r"(?<=/)([0-9]+)(?=/|\Z)")
# Takes the place of a number; no address that leads somewhere holds it.
_PLACEHOLDER = "\0"


def build_request(environ: WSGIEnvironment) -> FastRequest | None:
    """The request of a WSGI environment if it may take the fast path; the environment belongs to it from then on."""
    if environ.get("HTTP_COOKIE") or get_state(environ).refused:
        return None
    # A client that prefers JSON to everything prefers it to a page: the request takes API_MIDDLEWARE.
    if choose_media_type(environ.get("HTTP_ACCEPT", ""), MEDIA_TYPES).media_type != JSON:
        return None
    view = _resolve(environ.get("PATH_INFO", ""))
    return FastRequest(environ, *view) if view else None


def get_response(request: FastRequest) -> HttpResponse:
    """The response to a request of the fast path."""
    response = _get_stack()(request)
    content_type = response.headers.get("Content-Type", "")
    set_default_headers(response, _get_security_headers(request.is_secure(), content_type))
    return response


@cache
def _get_stack() -> GetResponse:
    # Its work is done here at once.
    return build_api_stack(_call_view, without="config.http.middleware.SecurityHeadersMiddleware")


def _call_view(request: Any) -> HttpResponse:
    response: HttpResponse = request.view(request, **request.view_kwargs).render()
    return response


@lru_cache(maxsize=64)
def _get_security_headers(is_secure: bool, content_type: str) -> FastHeaders:
    return FastHeaders(get_security_headers(is_secure, content_type))


def _resolve(path: str) -> tuple[ResolverMatch, View, Mapping[str, str]] | None:
    """The view at a path, if it is one of ours, and its keyword arguments.

    Paths that differ in nothing but numbers lead to the same view, so that each form of path is resolved once.
    """
    if _PLACEHOLDER in path or not path.isascii():
        return None
    # Alternately the text around the numbers, and the numbers.
    parts = _NUMBER.split(path)
    match, view, numbers = _resolve_form(*parts[::2])
    if match is None:
        return None
    return match, view, match.kwargs | {name: parts[index] for name, index in numbers}


@lru_cache(maxsize=512)
def _resolve_form(start: str, *others: str) -> tuple[ResolverMatch | None, Any, Sequence[tuple[str, int]]]:
    """The view at the paths of a form; and the names of the numbers in them, each with its index."""
    path = start + "".join(f"{_PLACEHOLDER}{index}{text}" for index, text in enumerate(others))
    if not is_versioned(path):
        return None, None, ()
    try:
        match = resolve(path)
    except Resolver404:
        return None, None, ()
    view = accelerate(match.func)
    if view is None:
        return None, None, ()
    numbers = [(name, 2 * int(value[1:]) + 1) for name, value in match.kwargs.items() if value.startswith(_PLACEHOLDER)]
    return match, view, numbers
