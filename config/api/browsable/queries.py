"""The query of a list, and the queries that a person can reach from it: by a search, a filter or another order.

Every offered query leads to a list that exists. Filters that do not go with it, by the rule that the list itself obeys
(config.api.listing.combinations), are left out of it, and the page says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from config.api.browsable.navigation import get_query
from config.api.listing.combinations import find_refusals
from config.api.listing.filter_values import BOUNDS, SEPARATOR, BoundFilter, IdsFilter
from config.api.listing.filters import SEARCH, Ordering, StrictFilterSet
from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT
from config.api.versions.table import Version
from config.api.versions.versioning import VERSION_PARAMETER, strip_prefix
from config.api.viewsets import ResourceViewSet
from config.http.headers import quote_address
from config.http.media_types import CSV, NDJSON

# The parameters that choose a page, each with the value that begins at the start of the list.
START = {"page": "1", "offset": "0", "cursor": ""}
# A value that every filter by ids takes. Which filters go together does not depend on their values.
_ANY = "1"

Pair = tuple[str, str]


@dataclass(frozen=True)
class FilterControl:
    """One filter of a form. With `choices` it is a choice of one of them, or of none."""

    name: str
    value: str
    hint: str = ""
    choices: Sequence[str] = ()


@dataclass(frozen=True)
class FilterForm:
    """The filters by one column.

    Attributes:
        hidden: the parameters that are repeated as they are.
        note: what else the form changes.
        is_set: whether the list is filtered by the column.
    """

    column: str
    controls: Sequence[FilterControl]
    hidden: Sequence[Pair]
    note: str
    is_set: bool


class ListQuery:
    """The query of the request of a list.

    Args:
        request: the request of the list.
        view: its view.

    Attributes:
        sort: the field that the list is sorted by.
        values: the filters of the request that are not empty, by name.
    """

    def __init__(self, request: HttpRequest, view: ResourceViewSet) -> None:
        self.view, self.path = view, request.path
        self.query = {name: str(value) for name, value in get_query(request).items()}
        self._filterset: type[StrictFilterSet] = view.filterset_class
        self.values = {name: value for name in self.names if (value := self.query.get(name))}
        self.sort = self.query.get("sort") or self._filterset.get_default_sort(self.values)
        if self.sort not in view.sortable:
            self.sort = "id"
        self.descends = self.query.get("order") == "desc"

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the filters that the caller may use."""
        # A request that is refused before its query is looked at has no parameters.
        parameters = getattr(self.view, "parameters", None)
        principal = getattr(self.view.request, "auth", None) if parameters else None
        later = self._filterset.later if parameters and parameters.takes_later else ()
        refused = () if principal and principal.user.is_staff else self.view.staff_filters
        return [name for name in (*self._filterset.first, *later) if name not in refused]

    # --- Addresses

    def build_parameters(self, without: Iterable[str] = (), **more: str) -> list[Pair]:
        """The parameters of the start of the list, in the way of paging of the request.

        Args:
            without: the names of parameters that are left out.
            more: parameters that replace the request's.
        """
        gone = {*without, *START, *more}
        kept = [(name, value) for name, value in self.query.items() if name not in gone and value]
        mode = [(name, start) for name, start in START.items() if name in self.query]
        return [*kept, *more.items(), *mode[:1]]

    def build_address(self, without: Iterable[str] = (), **more: str) -> str:
        """The address of the list with the parameters of `build_parameters`."""
        return quote_address(self.path, urlencode(self.build_parameters(without, **more)))

    def describe_position(self, body: object) -> Mapping[str, str]:
        """The position of a page in its list, and the address of the list in the other way of paging.

        Args:
            body: the parsed body of the response.

        Returns:
            The position under `summary`, the other way under `other` and `address`; empty where the body is no page.
        """
        meta = body.get("meta") if isinstance(body, dict) else None
        if not meta:
            return {}
        other, parameter = "page by cursor", "cursor"
        if "hasMore" in meta:
            summary, other, parameter = "", "page by number", "page"
        elif meta["total"] is None:
            summary = f"Page {meta['page']:,} (more than {meta['totalAtLeast']:,} items)"
        else:
            summary = f"Page {meta['page']:,} of {meta['totalPages']:,} ({meta['total']:,} items)"
        query = [(name, value) for name, value in self.query.items() if name not in START]
        address = quote_address(self.path, urlencode([*query, (parameter, START[parameter])]))
        return {"summary": summary, "other": other, "address": address}

    def build_downloads(self, version: Version) -> Mapping[str, object] | None:
        """The address of the whole list, and its formats; None if it cannot be streamed.

        Args:
            version: of the page: with another Accept, an address without one may be answered in another version.
        """
        if not self.view.may_stream():
            return None
        left_out = {*START, "limit", "include", "envelope", VERSION_PARAMETER}
        query = [(name, value) for name, value in self.query.items() if name not in left_out]
        path = f"/api/v{version}{strip_prefix(self.path)}"
        return {"address": quote_address(path, urlencode(query)), "formats": (("CSV", CSV), ("NDJSON", NDJSON))}

    # --- Which go together

    def find_left_out(self, sort: str, own: Sequence[str] = ()) -> list[str]:
        """The filters of the request that do not go with an order and with further filters.

        Args:
            sort: the field to sort by.
            own: the names of further filters.
        """
        given = [name for name in self.values if name != SEARCH and name not in own]
        kept = given
        while kept and (refused := self._find_refused([*kept, *own], sort)):
            others = [name for name in kept if name not in refused]
            kept = others if len(others) < len(kept) else []
        return [name for name in given if name not in kept]

    def _find_refused(self, names: Sequence[str], sort: str) -> Sequence[str]:
        if not any(name in self._filterset.later or SEPARATOR in self.values.get(name, "") for name in names):
            # Those of the first version go with every order.
            return ()
        model: Any = self.view.queryset.model
        parent = [self.view.parent_field] if self.view.parent_field else []
        refusals = find_refusals(self._filterset, model, dict.fromkeys(names, _ANY), Ordering(sort), parent)
        return [name for name, _ in refusals]

    # --- What the page offers

    def build_filter_forms(self) -> Sequence[FilterForm]:
        """The form of each column that has filters."""
        columns: dict[str, list[str]] = {}
        for name in self.names:
            if name != SEARCH:
                column = str(self._filterset.base_filters[name].field_name)
                columns.setdefault(column, []).append(name)
        return [self._build_filter_form(column, names) for column, names in columns.items()]

    def _build_filter_form(self, column: str, names: Sequence[str]) -> FilterForm:
        filters = self._filterset.base_filters
        bounds = [name for name in names if isinstance(filters[name], BoundFilter)]
        sort = column if bounds else self.sort
        # The other filters of such a column go with whatever its bounds go with.
        own = bounds or names
        if self._find_refused(own, sort):
            sort = "id"
        left_out = self.find_left_out(sort, own)
        more = {} if sort == self.sort else {"sort": sort}
        changes = [f"sorts by {sort}"] if more else []
        changes += [f"removes {', '.join(left_out)}"] if left_out else []
        return FilterForm(
            column=column,
            controls=[self._build_control(name) for name in names],
            hidden=self.build_parameters([*names, *left_out], **more),
            note=f"{' and '.join(changes)}.".capitalize() if changes else "",
            is_set=not self.values.keys().isdisjoint(names),
        )

    def _build_control(self, name: str) -> FilterControl:
        declared, value = self._filterset.base_filters[name], self.query.get(name, "")
        choices = [choice for choice, _ in declared.extra.get("choices", ())]
        if choices and value not in {*choices, ""}:
            # Several of them, by commas.
            choices.append(value)
        if isinstance(declared, BoundFilter):
            return FilterControl(name, value, BOUNDS[declared.lookup_expr])
        hint = "Separate several values with commas." if isinstance(declared, IdsFilter) else ""
        return FilterControl(name, value, hint, choices)

    def build_search_form(self) -> Mapping[str, object] | None:
        """The words that the list is searched for, and the parameters that are repeated; None where it has no `q`."""
        if SEARCH not in self.names:
            return None
        columns = " or ".join(self._filterset.base_filters[SEARCH].columns)
        return {"value": self.query.get(SEARCH, ""), "hint": columns, "hidden": self.build_parameters([SEARCH])}

    def build_chosen(self) -> Sequence[tuple[str, str, str]]:
        """Each filter of the request: its name, its value, and the address of the list without it."""
        return [(name, value, self.build_address([name])) for name, value in self.values.items()]

    def build_view_form(self) -> Mapping[str, object]:
        """The form of what is no filter: order, limit and fields."""
        sortable = [name for name in self.view.sortable if name == self.sort or not self.find_left_out(name)]
        return {
            "sortable": sortable,
            "refused": ", ".join(name for name in self.view.sortable if name not in sortable),
            "sort": self.sort,
            "order": "desc" if self.descends else "asc",
            "limit": self.query.get("limit", ""),
            "default_limit": DEFAULT_LIMIT,
            "max_limit": MAX_LIMIT,
            "fields": self.query.get("fields", ""),
            "readable_fields": ", ".join(self.view.readable_fields),
            "hidden": self.build_parameters(["sort", "order", "limit", "fields"]),
        }
