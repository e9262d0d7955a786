"""The one base viewset: an app's viewset is declarations, and obeys every convention without saying so."""

import re
from collections.abc import Sequence
from functools import cache, wraps
from operator import attrgetter
from typing import Any, ClassVar

from django.db.models import Exists, Model, QuerySet
from django.http import HttpRequest
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.viewsets import ViewSetMixin

from config.api.listing import ordering, pagination, sparse_fields
from config.api.listing.filters import StrictFilterSet
from config.api.listing.query import Parameters
from config.api.principal import Principal
from config.api.representation import envelope, links
from config.api.representation.serializers import GREATEST_ID
from config.api.versions.paths import without_prefix
from config.api.views import Conventions
from config.api.writing import idempotency
from config.api.writing.idempotency import Key, KeyPolicy
from config.fastpath import serializers, statement_cache
from config.fastpath.responses import Response
from config.http import etags
from config.http.errors import DomainError, not_found
from config.postgresql import transactions

_ID = re.compile(r"[1-9][0-9]{0,18}")


def id_of(text: str) -> int:
    """Reads an id from an address; what is no positive 64-bit integer is not found."""
    if not _ID.fullmatch(text) or int(text) > GREATEST_ID:
        raise not_found()
    return int(text)


@cache
def readable_fields(serializer_class: Any) -> tuple[str, ...]:
    return tuple(name for name, field in serializer_class().fields.items() if not field.write_only)


@cache
def readable_names(serializer_class: Any) -> frozenset[str]:
    return frozenset(readable_fields(serializer_class))


class ResourceViewSet(ViewSetMixin, Conventions, GenericAPIView):
    """A collection and its resources.

    A subclass declares; `http_method_names` says which methods there are.

    Attributes:
        queryset: of a QuerySet class with `visible_to(principal)`.
        serializer_class: a ResourceSerializer.
        scope: the part of a scope before the colon; None where any credential will do.
        sortable: the fields a list may be sorted by, `id` among them.
        filterset_class: the equality filters of the list.
        links: of a single resource, `self` first.
        state_columns: those of which one moves whenever a row changes, or what it shows beside its own columns; there
            is one at least.
        parent_field: of a nested collection, the foreign key to the parent, under which the address names it too;
            `parents()` then says which parents the caller may look into.
        idempotency: what POST does with an `Idempotency-Key`.
    """

    scope: ClassVar[str | None]
    sortable: ClassVar[Sequence[str]] = ("id",)
    filterset_class: ClassVar[type[StrictFilterSet]] = StrictFilterSet
    links: ClassVar[Sequence[links.Link]]
    state_columns: ClassVar[Sequence[str]] = ("row_version",)
    parent_field: ClassVar[str | None] = None
    idempotency: ClassVar[KeyPolicy] = KeyPolicy.IGNORED
    lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    pagination_class = None

    parameters: Parameters
    principal: Principal
    parent_id: Any

    @classmethod
    def as_view(cls, actions: dict[str, str] | None = None, **initkwargs: Any) -> Any:
        """DRF's, but that methods are led to their actions once, in a class of their own, and not in each view anew."""
        stock = super().as_view(actions, **initkwargs)
        actions = stock.actions
        if "get" in actions:
            actions.setdefault("head", actions["get"])
        methods = {method: property(attrgetter(action)) for method, action in actions.items()}
        own = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        bound: Any = type(cls.__name__, (cls,), {**own, "action_map": actions, **initkwargs, **methods})

        @wraps(stock)
        def view(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return bound().dispatch(request, *args, **kwargs)

        return view

    # --- What a subclass may answer differently

    def parents(self) -> QuerySet[Any]:
        raise NotImplementedError

    def showing(self, rows: QuerySet[Any], names: frozenset[str], *, single: bool) -> QuerySet[Any]:
        """The rows, a page of a list or a single one, with what the named fields show beside their own columns.

        It is read in the same statement: an entity tag must not pair a row with what others show of another moment.
        """
        return rows

    def is_plain_addition(self, data: Any) -> bool:
        """Whether to create a row of this body is to add what the serializer makes of it, and nothing else."""
        return False

    def perform_create(self, serializer: Any) -> Any:
        return serializer.save()

    def perform_update(self, serializer: Any) -> Any:
        return serializer.save()

    def perform_destroy(self, instance: Any) -> None:
        instance.delete()

    # --- The actions

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        try:
            page = self.page(request)
        except DomainError:
            self.check_parent()
            raise
        if not page.rows:
            # Rows there are only below a parent that the caller may look into: the statement that read them saw to it.
            self.check_parent()
        page_links = links.of_page(request, self.parameters, page.place, page.links)
        items = self.represent(page.rows)
        response = Response(envelope.page(items, page.meta, page_links) if self.enveloped else items)
        response.headers["Link"] = links.header(page_links)
        if not self.enveloped and "total" in page.meta:
            response["X-Total-Count"] = page.meta["total"]
        return response

    def page(self, request: Request) -> pagination.Page:
        order = ordering.read(self.parameters, self.sortable)
        filters = self.filterset_class.read(self.parameters)
        bound_to = {"list": without_prefix(request.path), **filters}
        paginator = pagination.read(self.parameters, order, bound_to)
        self.parameters.check()
        return paginator.page_of(statement_cache.listed(self.alike, order, filters), self.values)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.respond(self.get_object())

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        data = request.data
        key = idempotency.key_of(request, self.idempotency)
        if self.is_plain_addition(data) and (response := self.add(data, key)) is not None:
            return response

        def write() -> tuple[Response, Model]:
            # Not before: a retry is told what it did, also when the parent is gone meanwhile.
            self.check_parent()
            serializer = self.get_serializer(data=data)
            serializer.is_valid(raise_exception=True)
            row = self.perform_create(serializer)
            return self.respond_created(row), row

        return transactions.run(idempotency.once(key, request, write) if key else lambda: write()[0])

    def add(self, data: Any, key: Key | None) -> Response | None:
        """The answer to a row that was added by one statement; None where it was not, and must be tried otherwise."""
        serializer = self.get_serializer(data=data)
        # With a key that was seen for another request that is told, and not what is wrong with this one.
        if not serializer.is_valid(raise_exception=key is None):
            return None
        # While the answer is made, nothing keeps the key: the statement finds out whether it is still unknown.
        # It waits for nobody who removes the user, since those that are asked together would wait, too.
        within, unless = (key.recorded, key.seen) if key else (lambda *_: self.principal.present, None)
        added: Response | None = serializer.save_answered(self.respond_created, within, unless)
        if added is None:
            # What would have been there is not what is answered: it gives no entity tag.
            self.row = self.state = None
        return added

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        data, partial = request.data, request.method == "PATCH"

        def write() -> Response:
            serializer = self.get_serializer(self.get_object(lock=True), data=data, partial=partial)
            serializer.is_valid(raise_exception=True)
            response = self.respond(self.perform_update(serializer))
            # The content is the new representation, and not a report on the change (RFC 9110, section 8.7).
            response["Content-Location"] = request.get_full_path()
            return response

        return transactions.run(write)

    partial_update = update

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        transactions.run(lambda: self.perform_destroy(self.get_object(lock=True)))
        return Response(status=204)

    # --- How

    @property
    def alike(self) -> "ResourceViewSet":
        """This view as it reads rows for any request like this one: the ids are Parameters, which `values` gives."""
        view: Any = type(self)
        found: ResourceViewSet = statement_cache.alike(
            view, self.action, self.principal.user.role, self.principal.kind, self.chosen
        )
        return found

    @property
    def values(self) -> dict[str, Any]:
        return {"user_id": self.principal.user.id, "parent_id": self.parent_id}

    def required_scope(self, method: str) -> str | None:
        if self.scope is None:
            return None
        return f"{self.scope}:{'read' if method in SAFE_METHODS else 'write'}"

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Read before anything is written: a request that is refused must not have had an effect.
        self.chosen = sparse_fields.read(self.parameters, readable_fields(self.serializer_class))
        if self.action != "list":
            self.parameters.check()
        self.parent_id = None
        if self.parent_field and self.action != "metadata":
            self.parent_id = id_of(self.kwargs[self.parent_field])

    def fields_in(self, request: Request) -> Sequence[str]:
        """The writable fields that the request's body names."""
        if request.method == "DELETE":
            return ()
        writable = {name for name, field in self.get_serializer().fields.items() if not field.read_only}
        return [name for name in request.data if name in writable]

    def get_queryset(self) -> QuerySet[Any]:
        rows = self.queryset.all()
        if getattr(self, "swagger_fake_view", False):
            return rows
        rows = rows.visible_to(self.principal)
        if self.parent_field is None:
            return rows
        # The look at the parent is no condition on a row: PostgreSQL takes it once, before the first one.
        return rows.filter(Exists(self.parents().filter(pk=self.parent_id)), **{self.parent_field: self.parent_id})

    def check_parent(self) -> None:
        """404 unless the caller may look into the parent, if there is to be one."""
        if self.parent_field and not statement_cache.parent(self.alike).rows(**self.values):
            raise not_found()

    def get_serializer_context(self) -> dict[str, Any]:
        return {
            **super().get_serializer_context(),
            "principal": getattr(self.request, "auth", None),
            "version": getattr(self.request, "version", None),
        }

    def get_object(self, *, lock: bool = False) -> Any:
        found = statement_cache.single(self.alike, lock).rows(id=id_of(self.kwargs["id"]), **self.values)
        if not found:
            raise not_found()
        (row,) = found
        self.check_object_permissions(self.request, row)
        if lock:
            # Compared while the row is locked: of two writers with the same tag, the second finds another state.
            self.preconditions.check(etags.state_of(row, self.state_columns))
        return row

    @property
    def names(self) -> frozenset[str]:
        """The fields that the answer shows."""
        return self.chosen or readable_names(self.serializer_class)

    def represent(self, rows: Sequence[Model]) -> Sequence[dict[str, Any]]:
        render = serializers.renderer(self.serializer_class, self.request.version, self.names)
        if render:
            return render(rows)
        serializer = self.get_serializer()
        for name in serializer.fields.keys() - self.names:
            serializer.fields.pop(name)
        return [serializer.to_representation(row) for row in rows]

    def respond(self, row: Model, status: int = 200) -> Response:
        self.row, self.state = row, etags.state_of(row, self.state_columns)
        (data,) = self.represent([row])
        if self.chosen is None:
            data[envelope.LINKS] = links.of_row(self.request, self.links, row)
        return self.success(data, status)

    def respond_created(self, row: Model) -> Response:
        response = self.respond(row, status=201)
        response["Location"] = links.address(self.request, self.links[0].path.format(row))
        return response
