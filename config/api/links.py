"""Links: what this caller may do next, under the prefix or version parameter that it used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rest_framework.request import Request

from config.api.parameters import VERSION_PARAMETER, Parameters
from config.api.paths import prefix_of
from config.api.principal import Principal

# What says whether a caller may follow a link from a row.
Condition = Callable[[Principal, Any], bool]


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a single resource.

    Attributes:
        rel: its name in `_links`.
        path: where it leads, without prefix; `{0.id}` and the like are filled from the row.
        scope: what the credential must allow, if anything.
        method: told only when it is not GET.
        when: what else must hold.
        reads: the foreign key of the row whose target `when` looks at, if any; it is read with the row.
    """

    rel: str
    path: str
    scope: str | None = None
    method: str = "GET"
    when: Condition | None = None
    reads: str | None = None

    def open_to(self, principal: Principal | None, row: Any) -> bool:
        if principal is None or (self.scope and self.scope not in principal.scopes):
            return False
        return self.when is None or self.when(principal, row)


def address(request: Request, path: str) -> str:
    """The address of a resource in the form that the caller used."""
    prefix, query = _form(request)
    return f"{prefix}{path}{query}"


def _form(request: Request) -> tuple[str, str]:
    """What stands before and behind the paths of resources."""
    version = request.query_params.get(VERSION_PARAMETER)
    return prefix_of(request.path), f"?{urlencode({VERSION_PARAMETER: version})}" if version else ""


def of_row(request: Request, links: Sequence[Link], row: Any) -> dict[str, dict[str, str]]:
    (prefix, query), principal = _form(request), request.auth
    return {
        link.rel: {"href": f"{prefix}{link.path.format(row)}{query}"}
        | ({} if link.method == "GET" else {"method": link.method})
        for link in links
        if link.open_to(principal, row)
    }


def of_page(request: Request, parameters: Parameters, relations: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The links of a page: `self`, and each relation as the query it differs by."""
    return {
        rel: {"href": f"{request.path}?{query}" if (query := parameters.with_changes(**changes)) else request.path}
        for rel, changes in {"self": {}, **relations}.items()
    }


def header(links: Mapping[str, Mapping[str, str]]) -> str:
    """The same links as a `Link` header (RFC 8288)."""
    return ", ".join(f'<{link["href"]}>; rel="{rel}"' for rel, link in links.items())
