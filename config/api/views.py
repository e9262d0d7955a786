"""What every view here has in common, a resource's or not: how requests are checked, and responses finished."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from config.api.limits.quotas import consume_quota
from config.api.listing.query import QueryParameters
from config.api.representation import envelope
from config.api.representation.renderers import render_as_data
from config.api.representation.serializers import StrictSerializer
from config.api.requests import JSONParser, MergePatchParser, StrictRequest
from config.http.errors import DomainError, ErrorCode
from config.http.etags import NO_PRECONDITIONS, Preconditions, finalize_etag, parse_preconditions
from config.http.headers import set_default_headers, vary_on
from config.http.lanes import Lane
from config.http.request_limits import MAX_SHORT_BODY
from config.http.request_state import get_state

VARY = ("Accept", "Authorization", "X-API-Key", "Cookie")
ACCEPT_PATCH = f"{JSONParser.media_type}, {MergePatchParser.media_type}"


def is_browsable(answer: HttpResponseBase | Request) -> bool:
    """Whether an answer of a view, or to a request whose renderer is chosen, will be shown on a page."""
    return getattr(getattr(answer, "accepted_renderer", None), "is_page", False)


class ConventionsMixin(APIView):
    """The conventions of every DRF view here.

    Attributes:
        cache_control: the Cache-Control of its responses, but for those that have their own.
        own_errors: by method, the errors that do not follow from the conventions (for config.api.schema).
        envelope_known: whether it takes `?envelope=` (for config.api.schema).
        names_version: whether it accepts `?version=` although its path is at the root only (for config.api.schema).
        lanes: by method, the lane of a request; the fast one for methods that are not named.
        max_body: the bytes that a body may have. JSON may write a character of a text as twelve bytes, the escapes of
            two surrogates (RFC 8259, section 7).
        texts: by method, what it does, in words for callers; by action in a viewset (config.api.descriptions), where
            `created` is what its 201 says.
        own_parameters: OpenAPI's parameters of its path, instead of those that follow from the conventions, and of its
            GET, in addition to them.
        own_members: by name, JSON Schemas of what the response to its GET has besides `data`, with an example if the
            member is always there.
        row: the one row that the response represents, if it represents one; `version_digest` is the row's.
    """

    request: Request
    # A Principal, which it is in every view that asks for a credential; None without one.
    principal: Any
    parameters: QueryParameters
    # DRF's suffix of an address, of which there is none.
    format_kwarg: str | None = None
    cache_control: str = "private, no-cache"
    own_errors: ClassVar[Mapping[str, Sequence[ErrorCode]]] = {}
    envelope_known: ClassVar[bool] = True
    names_version: ClassVar[bool] = False
    lanes: ClassVar[Mapping[str, Lane]] = {}
    max_body: ClassVar[int] = MAX_SHORT_BODY
    texts: ClassVar[Mapping[str, str]] = {}
    own_parameters: ClassVar[Sequence[Mapping[str, Any]]] = ()
    own_members: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    enveloped = True
    preconditions: Preconditions = NO_PRECONDITIONS
    version_digest: str | None = None
    row: Model | None = None

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> StrictRequest:
        return StrictRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Runs DRF's checks in the order in which a client can mend them: what it speaks, then who it is."""
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = self.determine_version(request, *args, **kwargs)
        if request.method not in self.allowed_methods:
            raise MethodNotAllowed(str(request.method))
        self.parameters = self.build_parameters(request)
        self.enveloped = self.parameters.flag("envelope", default=True)
        self.perform_authentication(request)
        self.principal = get_state(request.META).principal = request.auth
        self.check_permissions(request)
        self.check_throttles(request)
        self.preconditions = parse_preconditions(request)

    def build_parameters(self, request: Request) -> QueryParameters:
        # OPTIONS is asked with the parameters of whatever it describes.
        version = None if request.method == "OPTIONS" else request.version
        is_page = request.method in {"GET", "HEAD"} and is_browsable(request)
        return QueryParameters(request.query_params, version, is_page=is_page)

    def perform_authentication(self, request: Request) -> None:
        try:
            user = request.user
        except (DomainError, APIException):
            # A second access, as a page makes, must not check the credential again.
            request.user = request.auth = None
            consume_quota(request, None)
            raise
        consume_quota(request, user)

    def describe(self, action: str) -> str:
        """The description of an operation for callers.

        Args:
            action: an action of a viewset, such as `list`; of another view its method, such as `get`.

        Returns:
            A sentence, which may be followed by paragraphs; empty where nothing is declared.
        """
        return self.texts.get(action, "")

    def get_view_description(self, html: bool = False) -> str:
        """The text of what one reads here, in DRF's place for it; never the docstring, which is for developers."""
        return self.describe(next(iter(self.texts), ""))

    def required_scope(self, method: str) -> str | None:
        """The scope that a method needs; None where any credential will do."""
        return None

    def options(self, request: Request, *args: object, **kwargs: object) -> Response:
        render_as_data(request)
        scopes = {scope for method in self.allowed_methods if (scope := self.required_scope(method))}
        description = {
            "name": self.get_view_name(),
            "description": self.get_view_description(),
            "methods": self.allowed_methods,
            "scopes": sorted(scopes),
        }
        response = self.success(description)
        if "PATCH" in self.allowed_methods:
            response["Accept-Patch"] = ACCEPT_PATCH
        return response

    def build_response(self, data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """A resource's response; the fast path replaces it."""
        return Response(data, status, headers=headers)

    def success(self, data: object, status: int = 200) -> Response:
        """The response that holds one object, in the envelope unless the request wants it bare."""
        return self.build_response(envelope.single(data) if self.enveloped else data, status)

    def finalize_response(
        self, request: Request, response: HttpResponse, *args: object, **kwargs: object
    ) -> HttpResponse:
        response = super().finalize_response(request, response, *args, **kwargs)
        set_default_headers(response, {"Cache-Control": self.cache_control})
        vary_on(response, *VARY)
        if isinstance(response, Response):
            response.add_post_render_callback(partial(self.finalize_etag, request))
        return response

    def finalize_etag(self, request: Request, response: Response) -> Any:
        """Gives the rendered response its entity tag and coding; returns a 412 in its place where If-Match fails."""
        salt, page = str(getattr(request, "version", None)), is_browsable(response)
        try:
            finalize_etag(request, response, self.preconditions, self.version_digest, salt=salt, is_page=page)
        except DomainError as problem:
            refused: Response = self.finalize_response(request, self.handle_exception(problem))
            return refused.render()


class View(ConventionsMixin):
    """An endpoint that is no resource.

    Attributes:
        serializer_class: of the body of a POST; without fields where nothing is declared.
    """

    serializer_class: ClassVar[type[Serializer]] = StrictSerializer

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        self.parameters.check()

    def read(self, request: Request) -> dict[str, Any]:
        """The validated values of the body, which may be left out where it has no fields."""
        if self.serializer_class is StrictSerializer and request.stream is None:
            return {}
        serializer = self.serializer_class(data=request.data, context={"version": request.version})
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data
