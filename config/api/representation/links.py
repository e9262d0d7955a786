"""Links: what this caller may do next, under the prefix or version parameter that it used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from rest_framework.request import Request

from config.api.principal import Principal
from config.api.versions.paths import VERSION_PARAMETER, get_prefix

LINKS = "_links"
# What says whether a caller may follow a link from a row.
Condition = Callable[[Principal, Any], bool]


# Known by identity: each is declared once, and looked up at each request.
@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A link from a single resource.

    Attributes:
        rel: its name in `_links`.
        path: where it leads, without prefix; `{0.id}` and the like are filled from the row.
        scope: what the credential must allow, if anything.
        method: told only when it is not GET.
        when: what else must hold.
        select_related: the foreign key of the row whose target `when` looks at, if any; it is read with the row.
    """

    rel: str
    path: str
    scope: str | None = None
    method: str = "GET"
    when: Condition | None = None
    select_related: str | None = None


def build_address(request: Request, path: str) -> str:
    """The address of a resource in the form that the caller used."""
    prefix, query = _get_affixes(request)
    return f"{prefix}{path}{query}"


def _get_affixes(request: Request) -> tuple[str, str]:
    """What stands before and behind the paths of resources."""
    query, behind = request.query_params, ""
    # Not by `get`, which finds out by an exception.
    if VERSION_PARAMETER in query and (version := query[VERSION_PARAMETER]):
        behind = f"?{urlencode({VERSION_PARAMETER: version})}"
    return get_prefix(request.path), behind


def build_row_links(request: Request, links: Sequence[Link], row: Any) -> dict[str, dict[str, str]]:
    """The links of a row that this caller may follow now, by their relation."""
    (prefix, query), principal = _get_affixes(request), request.auth
    found: dict[str, dict[str, str]] = {}
    if principal is None:
        return found
    # A condition that several links have is asked once.
    holds: dict[Condition, bool] = {}
    for link in _filter_by_scopes(principal.scopes, *links):
        when = link.when
        if when and when not in holds:
            holds[when] = when(principal, row)
        if when is None or holds[when]:
            found[link.rel] = {"href": f"{prefix}{link.path.format(row)}{query}"}
            if link.method != "GET":
                found[link.rel]["method"] = link.method
    return found


# A user may give each key other scopes.
@lru_cache(maxsize=1024)
def _filter_by_scopes(scopes: frozenset[str], *links: Link) -> Sequence[Link]:
    """The links that need no other scope."""
    return [link for link in links if not link.scope or link.scope in scopes]
