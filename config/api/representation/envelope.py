"""The shape of every body, and the only place that spells it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings

from config.api.representation.links import LINKS
from config.http.errors import Detail, DomainError


def single(data: Any) -> dict[str, Any]:
    return {"success": True, "data": data}


def page(items: Sequence[Any], meta: Mapping[str, Any], links: Mapping[str, Any]) -> dict[str, Any]:
    return {"success": True, "data": items, "meta": meta, LINKS: links}


def error(problem: DomainError) -> dict[str, Any]:
    return {
        "success": False,
        "error": {"code": problem.code, "message": problem.message, "details": _details(problem.details)},
    }


def problem_details(problem: DomainError) -> dict[str, Any]:
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
