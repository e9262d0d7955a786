"""The one base viewset: an app's viewset is declarations, and obeys every convention without saying so."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from django.db.models import Exists, Model, QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSetMixin

from config.api.listing.filters import FilterBackend, StrictFilterSet
from config.api.listing.ordering import OrderingFilter
from config.api.listing.pagination import ListPagination
from config.api.representation.links import LINKS, Link, build_address, build_row_links
from config.api.views import ConventionsMixin
from config.api.writing.idempotency import KeyPolicy, parse_key
from config.http.errors import DomainError, not_found
from config.http.etags import get_version_digest
from config.postgresql.transactions import run_in_transaction

_MAX_ID = 2**63 - 1
_ID = re.compile(r"[1-9][0-9]{0,18}")


def parse_id(text: str) -> int:
    """The id in an address.

    Raises:
        DomainError: NOT_FOUND for what is no positive 64-bit integer.
    """
    if not _ID.fullmatch(text) or int(text) > _MAX_ID:
        raise not_found()
    return int(text)


@cache
def get_readable_fields(serializer_class: Any) -> tuple[str, ...]:
    """The names of the fields that a serializer's representation has."""
    return tuple(name for name, field in serializer_class().fields.items() if not field.write_only)


class ResourceViewSet(ViewSetMixin, ConventionsMixin, GenericAPIView):
    """A collection and its resources: DRF's GenericViewSet with the conventions of the API.

    A subclass declares; `http_method_names` says which methods there are. DRF's hooks do here what they do in DRF.

    Attributes:
        queryset: of a QuerySet class with `visible_to(principal)`.
        serializer_class: a ResourceSerializer.
        scope: the part of a scope before the colon; None where any credential will do.
        sortable: the fields a list may be sorted by, `id` among them.
        filterset_class: the equality filters of the list.
        links: of a single resource, `self` first.
        version_columns: those of which one changes whenever a row changes, or what it shows beside its own columns.
        parent_field: of a nested collection, the foreign key to the parent, under which the address names it too;
            `get_parents()` then says which parents the caller may look into.
        idempotency: what POST does with an `Idempotency-Key`.
    """

    scope: ClassVar[str | None]
    sortable: ClassVar[Sequence[str]] = ("id",)
    filter_backends = (OrderingFilter, FilterBackend)
    filterset_class: ClassVar[type[StrictFilterSet]] = StrictFilterSet
    pagination_class = ListPagination
    links: ClassVar[Sequence[Link]]
    version_columns: ClassVar[Sequence[str]] = ("row_version",)
    parent_field: ClassVar[str | None] = None
    idempotency: ClassVar[KeyPolicy] = KeyPolicy.IGNORED
    lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"

    chosen_fields: frozenset[str] | None = None
    parent_id: Any = None

    # --- Hooks of this service, beside DRF's

    def get_parents(self) -> QuerySet[Any]:
        """The parents below which the caller may look. It may ask for the principal's role, kind and user id alone."""
        raise NotImplementedError

    def with_related(self, queryset: QuerySet[Any], names: frozenset[str], *, single: bool) -> QuerySet[Any]:
        """Adds to rows what the named fields show beside their own columns.

        It is read in the same statement: an entity tag must not pair a row with the related rows of another moment.
        """
        return queryset

    def lock_related(self) -> None:
        """Takes the locks that come before that of the row, in the order in which every writer takes them."""

    # --- Actions

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        try:
            page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        except DomainError:
            self.check_parent()
            raise
        if not page:
            # Rows exist only below a parent that the caller may look into: the statement that read them checked it.
            self.check_parent()
        return self.get_paginated_response(self.represent(page or []))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.respond(self.get_object())

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        data = request.data
        key = parse_key(request, self.idempotency)

        def write() -> Response:
            if key is not None and (replay := key.fetch_replay()):
                return replay
            if self.principal is not None:
                # No row, nor a record of a key, shall be added after the user's removal took the others.
                self.principal.lock_key_share()
            # Not before: a retry is answered as the first request was, also when the parent has gone since.
            self.check_parent()
            serializer = self.get_serializer(data=data)
            serializer.is_valid(raise_exception=True)
            self.perform_create(serializer)
            response = self.respond_created(serializer.instance)
            if key is not None:
                key.store(response, serializer.instance)
            return response

        return run_in_transaction(write)

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        data, partial = request.data, request.method == "PATCH"

        def write() -> Response:
            serializer = self.get_serializer(self.get_object(lock=True), data=data, partial=partial)
            serializer.is_valid(raise_exception=True)
            self.perform_update(serializer)
            response = self.respond(serializer.instance)
            # The content is the new representation, and not a report on the change (RFC 9110, section 8.7).
            response["Content-Location"] = request.get_full_path()
            return response

        return run_in_transaction(write)

    partial_update = update

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        run_in_transaction(lambda: self.perform_destroy(self.get_object(lock=True)))
        return self.build_response(None, 204)

    def perform_create(self, serializer: Any) -> None:
        serializer.save()

    def perform_update(self, serializer: Any) -> None:
        serializer.save()

    def perform_destroy(self, instance: Any) -> None:
        instance.delete()

    # --- Requests

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Parsed before anything is written: a request that is refused must not have had an effect.
        self.chosen_fields = self.parameters.parse_fields(get_readable_fields(self.get_serializer_class()))
        if self.action != "list":
            self.parameters.check()
        if self.parent_field and self.action != "metadata":
            self.parent_id = parse_id(self.kwargs[self.parent_field])

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

    def get_serializer_context(self) -> dict[str, Any]:
        return {
            **super().get_serializer_context(),
            "principal": getattr(self.request, "auth", None),
            "version": getattr(self.request, "version", None),
        }

    # --- Rows

    def get_queryset(self) -> QuerySet[Any]:
        rows: Any = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        rows = rows.visible_to(self.principal)
        if self.parent_field is None:
            return rows
        # The check of the parent is no condition on a row: PostgreSQL evaluates it once, before the first one.
        exists = Exists(self.get_parents().filter(pk=self.parent_id))
        return rows.filter(exists, **{self.parent_field: self.parent_id})

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
        row = self.build_object_query(parse_id(self.kwargs["id"]), lock=lock).first()
        if row is None:
            raise not_found()
        self.check_object_permissions(self.request, row)
        if lock:
            # Compared while the row is locked: of two writers with one tag, the second finds another version.
            self.preconditions.check(get_version_digest(row, self.version_columns))
        return row

    def build_object_query(self, pk: Any, *, lock: bool) -> QuerySet[Any]:
        """The row of an id with what its links look at; with a lock, without what it shows beside its own columns."""
        rows = self.get_queryset().filter(pk=pk)
        if related := [link.select_related for link in self.links if link.select_related]:
            rows = rows.select_related(*related)
        if lock:
            # A row that will be deleted is locked against rows that are about to refer to it, too.
            return rows.select_for_update(of=("self",), no_key=self.action != "destroy")
        return self.with_related(rows, self.field_names, single=True)

    # --- Responses

    @property
    def field_names(self) -> frozenset[str]:
        """The fields that the representation shows."""
        return self.chosen_fields or frozenset(get_readable_fields(self.get_serializer_class()))

    def represent(self, rows: Sequence[Model]) -> Sequence[dict[str, Any]]:
        """The representations of rows, in the fields that were asked for."""
        data: Sequence[dict[str, Any]] = self.get_serializer(rows, many=True, fields=self.chosen_fields).data
        return data

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
