"""The one base viewset: an app's viewset is declarations, and obeys every convention without saying so."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import orjson
from django.conf import settings
from django.db.models import Model, QuerySet
from django.http.response import HttpResponseBase
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import ViewSetMixin

from config.api.backends import get_backend
from config.api.descriptions import RESOURCE_TEXTS
from config.api.included import IncludeMixin
from config.api.listing.filters import (
    FilterBackend,
    Ordering,
    OrderingFilter,
    StrictFilterSet,
    build_filterset_class,
)
from config.api.listing.pagination import ListPagination
from config.api.reading import ReplicaMixin
from config.api.representation.envelope import LINKS, Link, build_address, build_row_links
from config.api.representation.fields import is_id
from config.api.representation.serializers import Representation, ResourceSerializer
from config.api.streams import StreamMixin
from config.api.views import ConventionsMixin
from config.api.writing.idempotency import REPLAYED, IdempotencyKey, KeyPolicy, parse_key
from config.http.errors import DomainError, not_found
from config.http.etags import get_version_digest
from config.postgresql.transactions import run_in_transaction

READS = ("GET", "HEAD")
# On the answer to a write that was only tried.
DRY_RUN_HEADER = "Dry-Run"


def parse_id(text: str) -> int:
    """The id in an address.

    Raises:
        DomainError: NOT_FOUND for what is no positive 64-bit integer.
    """
    if not is_id(text):
        raise not_found()
    return int(text)


@cache
def get_readable_fields(serializer_class: type[ResourceSerializer], *, created: bool = False) -> tuple[str, ...]:
    """The names of the fields that a serializer's representation has.

    Args:
        created: in the response that creates the resource, which alone has the fields that are `shown_once`.
    """
    shown_once = () if created else serializer_class.shown_once
    fields = serializer_class().fields.items()
    return tuple(name for name, field in fields if not field.write_only and name not in shown_once)


class ResourceViewSet(ViewSetMixin, StreamMixin, IncludeMixin, ReplicaMixin, ConventionsMixin, GenericAPIView):
    """A collection and its resources: DRF's GenericViewSet with the conventions of the API.

    A subclass declares; `http_method_names` says which methods there are. DRF's hooks do here what they do in DRF.

    Attributes:
        queryset: of a QuerySet class with `visible_to(principal)`.
        serializer_class: a ResourceSerializer.
        scope: the part of a scope before the colon; None where any credential will do.
        sortable: the fields a list may be sorted by, `id` among them.
        filterset_class: the filters of the list, besides those that `build_filterset_class` adds.
        staff_filters: the names of filters that are for those who see more than their own rows.
        links: of a single resource, `self` first.
        version_columns: columns of which one changes whenever a row or a related value that it shows changes.
        parent_field: of a nested collection, the foreign key to the parent, under which the address names it too;
            `get_parents()` then says which parents the caller may look into. `get_queryset` selects no row below
            another one: `visible_to` and the managers of rows that go with their parent see to it.
        idempotency: what POST does with an `Idempotency-Key`.
        bulk: whether POST takes many resources, as NDJSON (config.api.bulk).
    """

    scope: ClassVar[str | None]
    sortable: ClassVar[Sequence[str]] = ("id",)
    filter_backends = (OrderingFilter, FilterBackend)
    filterset_class: ClassVar[type[StrictFilterSet]] = StrictFilterSet
    staff_filters: ClassVar[Sequence[str]] = ("user_id",)
    pagination_class = ListPagination
    links: ClassVar[Sequence[Link]]
    version_columns: ClassVar[Sequence[str]] = ("row_version",)
    parent_field: ClassVar[str | None] = None
    idempotency: ClassVar[KeyPolicy] = KeyPolicy.IGNORED
    bulk: ClassVar[bool] = False
    lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"

    chosen_fields: frozenset[str] | None = None
    filter_values: Mapping[str, str] = {}
    ordering = Ordering()
    parent_id: Any = None
    is_dry_run = is_bulk = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        rows: Any = getattr(cls, "queryset", None)
        if rows is not None:
            declared: Any = cls.filterset_class
            cls.filterset_class = build_filterset_class(declared, rows.model, tuple(cls.sortable), cls.parent_field)

    # --- Hooks of this service, in addition to DRF's

    def get_parents(self) -> QuerySet[Model]:
        """The parents below which the caller may look. It may ask for the principal's role, kind and user id alone."""
        raise NotImplementedError

    def with_related(self, queryset: QuerySet[Model], names: frozenset[str], *, single: bool) -> QuerySet[Model]:
        """Adds to rows the related values that the named fields show.

        It is read in the same statement: an entity tag must not pair a row with the related rows of another moment.
        """
        return queryset

    def lock_related(self) -> None:
        """Takes the locks that come before that of the row, in the order in which every writer takes them."""

    def get_address_values(self) -> dict[str, object]:
        """The columns of a new row that the address gives, of which it locks what they refer to."""
        return {}

    def describe(self, action: str) -> str:
        names = self.queryset.model._meta
        parent = f" of the {self.parent_field.removesuffix('_id')}" if self.parent_field else ""
        texts = {**RESOURCE_TEXTS, **self.texts}
        return texts.get(action, "").format(one=names.verbose_name, many=names.verbose_name_plural, parent=parent)

    def get_view_description(self, html: bool = False) -> str:
        return self.describe("list" if self.suffix == "List" else "retrieve")

    # --- Actions

    def list(self, request: Request, *args: object, **kwargs: object) -> HttpResponseBase:
        if self.is_stream:
            return self.stream()
        try:
            page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        except DomainError:
            self.check_parent()
            raise
        if not page:
            # Rows are selected only below a parent that the caller may look into.
            self.check_parent()
        return self.include(self.get_paginated_response(self.represent(page or [])), page or [])

    def retrieve(self, request: Request, *args: object, **kwargs: object) -> Response:
        row = self.get_object()
        return self.include(self.respond(row), [row])

    def create(self, request: Request, *args: object, **kwargs: object) -> Response:
        data = request.data
        if self.is_bulk:
            return self.create_many(data)

        def add() -> tuple[Response, Sequence[Model]]:
            serializer = self.get_serializer(data=data)
            serializer.is_valid(raise_exception=True)
            self.perform_create(serializer)
            return self.respond_created(serializer.instance), [serializer.instance]

        return self.run_create(parse_key(request, self.idempotency), add)

    def run_create(self, key: IdempotencyKey | None, add: Callable[[], tuple[Response, Sequence[Model]]]) -> Response:
        """The response to new rows, or the stored one of a key that was used.

        Args:
            add: adds the rows; returns the response, and the rows that it represents.
        """

        def write() -> Response:
            if key is not None and (replay := key.fetch_replay()):
                return self.build_response(*replay)
            if self.principal is not None:
                # No row, and no record of a key, may be added after the user's removal has taken the others.
                self.principal.lock_key_share()
            # Not before: a retry is answered as the first request was, also when the parent has gone since.
            self.check_parent()
            response, rows = add()
            if key is not None and rows:
                key.store(response, *rows)
            return response

        return self.run_write(write)

    def update(self, request: Request, *args: object, **kwargs: object) -> Response:
        data, partial = request.data, request.method == "PATCH"

        def write() -> Response:
            serializer = self.get_serializer(self.get_object(lock=True), data=data, partial=partial)
            serializer.is_valid(raise_exception=True)
            self.perform_update(serializer)
            response = self.respond(serializer.instance)
            # The content is the new representation, and not a report on the change (RFC 9110, section 8.7).
            response["Content-Location"] = request.get_full_path()
            return response

        return self.run_write(write)

    partial_update = update

    def destroy(self, request: Request, *args: object, **kwargs: object) -> Response:
        def write() -> Response:
            self.perform_destroy(self.get_object(lock=True))
            return self.build_response(None, 204)

        return self.run_write(write)

    def run_write(self, write: Callable[[], Response]) -> Response:
        """The response to a write, which is done in a transaction of its own; in a dry run nothing of it is kept."""
        if not self.is_dry_run:
            return run_in_transaction(write)
        response = run_in_transaction(write, keep=False)
        # Another state may come to have the version of this one, whose entity tag must not match it then.
        self.row = self.version_digest = None
        if response.status_code == 204:
            tried = self.success(None) if self.enveloped else self.build_response(orjson.Fragment(b"null"))
        else:
            tried = self.build_response(response.data)
        tried[DRY_RUN_HEADER] = "true"
        if REPLAYED in response.headers:
            tried[REPLAYED] = response[REPLAYED]
        return tried

    def perform_create(self, serializer: BaseSerializer) -> None:
        serializer.save(**self.get_address_values())

    def perform_update(self, serializer: BaseSerializer) -> None:
        serializer.save()

    def perform_destroy(self, instance: Any) -> None:
        instance.delete()

    # --- Requests

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        self.parse_query(request)
        if settings.REPLICAS and request.method in READS and self.principal is not None:
            self.begin_reading(request)

    def parse_query(self, request: Request) -> None:
        """Reads what all actions have in common: a request that is refused must not have had an effect."""
        self.chosen_fields = self.parameters.parse_fields(self.readable_fields)
        if request.method not in SAFE_METHODS:
            self.parse_write_parameters()
        elif self.parameters.takes_later and self.action != "metadata":
            self.parse_include()
        if self.action != "list":
            self.parameters.check()
        if self.parent_field and self.action != "metadata":
            self.parent_id = parse_id(self.kwargs[self.parent_field])

    def parse_write_parameters(self) -> None:
        self.is_dry_run = self.parameters.parse_dry_run()

    def create_many(self, lines: Sequence[Any]) -> Response:
        """The response to lines, where `is_bulk`."""
        raise NotImplementedError

    def get_line_serializer(self) -> ResourceSerializer:
        """The serializer that all lines go through, one after the other."""
        return self.get_serializer(data={})

    def required_scope(self, method: str) -> str | None:
        if self.scope is None:
            return None
        return f"{self.scope}:{'read' if method in SAFE_METHODS else 'write'}"

    def get_body_fields(self, request: Request) -> Sequence[str]:
        """The writable fields that the request's body names."""
        if request.method == "DELETE":
            return ()
        writable = {name for name, field in self.get_serializer().fields.items() if not field.read_only}
        return [name for name in request.data if name in writable]

    def get_serializer_context(self) -> dict[str, object]:
        return {
            **super().get_serializer_context(),
            "principal": getattr(self.request, "auth", None),
            "version": getattr(self.request, "version", None),
        }

    # --- Rows

    def get_queryset(self) -> QuerySet[Model]:
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        rows = rows.visible_to(self.principal)
        return rows.filter(**{self.parent_field: self.parent_id}) if self.parent_field else rows

    def check_parent(self) -> None:
        """Raises DomainError, a NOT_FOUND, unless the caller may look into the parent, if the collection has one."""
        if self.parent_field and not self.get_parents().filter(pk=self.parent_id).exists():
            raise not_found()

    def get_object(self, *, lock: bool = False) -> Any:
        """The row of the address, locked where it will be written.

        Raises:
            DomainError: NOT_FOUND, FORBIDDEN, or PRECONDITION_FAILED for a row that is locked.
        """
        if lock:
            self.lock_related()
        pk = parse_id(self.kwargs["id"])
        row = self.build_object_query(self.filter_queryset(self.get_queryset()), pk, lock=lock).first()
        if row is None:
            raise not_found()
        self.check_object_permissions(self.request, row)
        if lock:
            # Compared while the row is locked: of two writers with one tag, the second finds another version.
            self.preconditions.check(get_version_digest(row, self.version_columns))
        return row

    def build_object_query(self, rows: QuerySet[Model], pk: object, *, lock: bool) -> QuerySet[Model]:
        """The row of an id with the rows that its links read; with a lock, without the related values that it shows.

        Args:
            rows: those among which it is looked for.
            pk: the id, or a bind parameter.
            lock: whether the row will be written.
        """
        rows = rows.filter(pk=pk)
        if related := [link.select_related for link in self.links if link.select_related]:
            rows = rows.select_related(*related)
        if lock:
            # A row that will be deleted is locked against rows that are about to refer to it, too.
            return rows.select_for_update(of=("self",), no_key=self.action != "destroy")
        return self.with_related(rows, self.field_names, single=True)

    # --- Responses

    @property
    def readable_fields(self) -> tuple[str, ...]:
        """The fields that the representation has, for the request to choose from."""
        return get_readable_fields(self.get_serializer_class(), created=self.action == "create")

    @property
    def field_names(self) -> frozenset[str]:
        """The fields that the representation shows."""
        return self.chosen_fields or frozenset(self.readable_fields)

    def represent(self, rows: Sequence[Model]) -> Sequence[Representation]:
        """The representations of rows, in the fields that were asked for."""
        return get_backend(settings.REPRESENTATION_BACKEND).represent(self, rows)

    def respond(self, row: Model, status: int = 200) -> Response:
        """The response that represents a row."""
        self.row, self.version_digest = row, get_version_digest(row, self.version_columns)
        (data,) = self.represent([row])
        if self.chosen_fields is None:
            data[LINKS] = build_row_links(self.request, self.links, row)
        return self.success(data, status)

    def respond_created(self, row: Model) -> Response:
        """The response that represents a new row, and says where it is."""
        response = self.respond(row, status=201)
        response["Location"] = build_address(self.request, self.links[0].path.format(row))
        return response
