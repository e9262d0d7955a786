"""What every view here has in common, a resource's or not: how requests are checked, and answers finished."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, ClassVar

from django.db.models import Model
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.request import Request
from rest_framework.views import APIView

from config.api.limits import quotas
from config.api.listing.query import Parameters
from config.api.representation import envelope
from config.api.representation.parsers import JSONParser, MergePatchParser, StrictRequest
from config.api.representation.renderers import render_as_data
from config.fastpath.responses import Response
from config.http import etags
from config.http.errors import DomainError, ErrorCode
from config.http.headers import Headers, give_missing, vary_on

VARY = ("Accept", "Authorization", "X-API-Key", "Cookie")


@cache
def _instances(*classes: Any) -> Sequence[Any]:
    """One of each class; what DRF makes anew for each request keeps nothing of a request here."""
    return [each() for each in classes]


@cache
def _allowed(view: Any) -> Sequence[str]:
    # Where there is a `get`, Django gives each view that it makes a `head`.
    implied = {"head"} if hasattr(view, "get") else set()
    return [name.upper() for name in view.http_method_names if name in implied or hasattr(view, name)]


# A view may have another `cache_control` for each of its answers.
@lru_cache(maxsize=512)
def _headers(view: Any, cache_control: str, described: bool) -> Headers:
    """Those of all answers of a view, unless an answer has its own.

    Args:
        described: whether it is the answer to OPTIONS.
    """
    methods = _allowed(view)
    headers = Headers({"Allow": ", ".join(methods), "Cache-Control": cache_control})
    if described and "PATCH" in methods:
        headers["Accept-Patch"] = f"{JSONParser.media_type}, {MergePatchParser.media_type}"
    return headers


class Conventions:
    """What every DRF view here has in common, a resource's or not."""

    # There is no format suffix to read it from.
    format_kwarg = None
    cache_control = "private, no-cache"
    preconditions = etags.NO_PRECONDITIONS
    # Of the one row that the answer represents, if it is one.
    state: str | None = None
    row: Model | None = None
    # --- What the reference cannot see by itself (config.api.schema)
    # The errors of its own, by method, beside those that follow from the conventions.
    own_errors: ClassVar[Mapping[str, Sequence[ErrorCode]]] = {}
    # Whether it may be asked with `?envelope=`, and with `?version=` where its path stands at the root only.
    envelope_known: ClassVar[bool] = True
    names_version: ClassVar[bool] = False
    # OpenAPI's security requirements, where a credential is asked for that is no user's.
    own_security: ClassVar[Sequence[Mapping[str, Sequence[str]]] | None] = None

    def dispatch(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """DRF's, but that the view does not hold its answer.

        The answer holds the view: of such a ring only the garbage collector takes the pieces, and looks for them in all
        that there is.
        """
        self.args, self.kwargs = args, kwargs
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            self.initial(request, *args, **kwargs)
            # Nothing but the methods that there are came up to here.
            response = getattr(self, request.method.lower())(request, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - the handler tells faults of ours from what a client is told
            response = self.handle_exception(problem)
        return self.finalize_response(request, response, *args, **kwargs)

    def initialize_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Request:
        return StrictRequest(request, self)

    def get_parsers(self: Any) -> Sequence[Any]:
        return _instances(*self.parser_classes)

    def get_renderers(self: Any) -> Sequence[Any]:
        return _instances(*self.renderer_classes)

    def get_authenticators(self: Any) -> Sequence[Any]:
        return _instances(*self.authentication_classes)

    def get_permissions(self: Any) -> Sequence[Any]:
        return _instances(*self.permission_classes)

    def get_content_negotiator(self: Any) -> Any:
        return _instances(self.content_negotiation_class)[0]

    def get_parser_context(self: Any, http_request: Any) -> dict[str, Any]:
        return {"view": self, "args": self.args, "kwargs": self.kwargs}

    def get_renderer_context(self: Any) -> dict[str, Any]:
        return {"view": self, "args": self.args, "kwargs": self.kwargs, "request": self.request}

    @property
    def allowed_methods(self: Any) -> Sequence[str]:
        view: Any = type(self)
        return _allowed(view)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """What a view itself adds; the others are put on all at once."""
        return {}

    def initial(self: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Runs the checks in the order in which a client can mend them: what it speaks, then who it is."""
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = self.determine_version(request, *args, **kwargs)
        if request.method not in self.allowed_methods:
            raise MethodNotAllowed(request.method)
        # A description is asked for with the parameters of whatever it describes.
        self.parameters = Parameters(request.query_params, None if request.method == "OPTIONS" else request.version)
        self.enveloped = self.parameters.flag("envelope", default=True)
        self.perform_authentication(request)
        self.principal = request._request.principal = request.auth
        self.check_permissions(request)
        if self.throttle_classes:
            self.check_throttles(request)
        self.preconditions = etags.read(request)

    def perform_authentication(self, request: Any) -> None:
        try:
            # DRF looks whether that was done, by way of several exceptions.
            request.authenticate()
        except (DomainError, APIException):
            quotas.charge(request, None)
            raise
        quotas.charge(request, request.user)

    def success(self, data: Any, status: int = 200) -> Response:
        """The answer that holds one object, in the envelope unless the request wants it bare."""
        return Response(envelope.single(data) if self.enveloped else data, status)

    def required_scope(self, method: str) -> str | None:
        return None

    def options(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        render_as_data(request)
        scopes = {scope for method in self.allowed_methods if (scope := self.required_scope(method))}
        return self.success(
            {
                "name": self.get_view_name(),
                "description": self.get_view_description(),
                "methods": self.allowed_methods,
                "scopes": sorted(scopes),
            }
        )

    def finalize_response(self: Any, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        view: Any = type(self)
        give_missing(response, _headers(view, self.cache_control, request.method == "OPTIONS"))
        vary_on(response, *VARY)
        if isinstance(response, Response):
            response.add_post_render_callback(partial(self.settle, request))
        return response

    def settle(self: Any, request: Any, response: Response) -> Any:
        """Gives the rendered answer its entity tag and its coding; returns another one if that is what they lead to."""
        try:
            etags.settle(request, response, self.preconditions, self.state)
        except DomainError as problem:
            return self.finalize_response(request, self.handle_exception(problem)).render()


class View(Conventions, APIView):
    """An endpoint that is no resource."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.parameters.check()
