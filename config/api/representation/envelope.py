"""The shape of every body, and the links in it.

Links are what this caller may do next, under the prefix or version parameter that it used.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Model
from rest_framework.request import Request

from config.api.principal import Principal
from config.api.versions.versioning import VERSION_PARAMETER, get_prefix
from config.http.errors import Detail, DomainError
from config.http.json import JSONObject


def single(data: object) -> JSONObject:
    return {"success": True, "data": data}


def lines(outcomes: Sequence[object], *, created: int) -> JSONObject:
    """The results of the lines of a body."""
    return {**single(outcomes), "meta": {"created": created}}


def error(problem: DomainError) -> JSONObject:
    return {
        "success": False,
        "error": {"code": problem.code, "message": problem.message, "details": _details(problem.details)},
    }


def problem_details(problem: DomainError) -> JSONObject:
    """The same facts as RFC 9457 problem details, whose `type` is best absolute (section 3.1.1)."""
    return {
        "type": f"{settings.PUBLIC_URL}{problem.code.help}",
        "title": problem.code.replace("_", " ").capitalize(),
        "status": problem.status,
        "detail": problem.message,
        "code": problem.code,
        "details": _details(problem.details),
    }


def oauth_error(problem: DomainError) -> dict[str, str]:
    """The same facts as OAuth has them (RFC 6749, sections 4.1.2.1 and 5.2)."""
    by_status = {429: "temporarily_unavailable", 500: "server_error", 503: "temporarily_unavailable"}
    description = " ".join(detail.message for detail in problem.details) or problem.message
    return {"error": by_status.get(problem.status, "invalid_request"), "error_description": _encodable(description)}


def _details(details: Iterable[Detail]) -> list[dict[str, str]]:
    # A field's name may come from the request's own JSON, where it can hold what UTF-8 cannot.
    return [{"field": _encodable(detail.field), "message": _encodable(detail.message)} for detail in details]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


LINKS = "_links"
# Says whether a caller may follow a link from a row.
Condition = Callable[[Principal, Any], bool]


# Known by identity: each is declared once, and looked up at each request.
@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A link from a single resource.

    Attributes:
        rel: its name in `_links`.
        path: where it leads, without prefix; `{0.id}` and the like are filled from the row.
        scope: what the credential must allow, if anything.
        method: shown only when it is not GET.
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
    """The prefix and the query string of links to resources."""
    query, behind = request.query_params, ""
    # Not by `get`, which finds out by an exception.
    if VERSION_PARAMETER in query and (version := query[VERSION_PARAMETER]):
        behind = f"?{urlencode({VERSION_PARAMETER: version})}"
    return get_prefix(request.path), behind


def build_row_links(request: Request, links: Sequence[Link], row: Model) -> dict[str, dict[str, str]]:
    """The links of a row that this caller may follow now, by their relation."""
    (prefix, query), principal = _get_affixes(request), request.auth
    found: dict[str, dict[str, str]] = {}
    for link in links if principal else ():
        is_allowed = link.scope is None or link.scope in principal.scopes
        if is_allowed and (link.when is None or link.when(principal, row)):
            found[link.rel] = {"href": f"{prefix}{link.path.format(row)}{query}"}
            if link.method != "GET":
                found[link.rel]["method"] = link.method
    return found
