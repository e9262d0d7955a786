"""The headers of answers, as components, and which answer carries which."""

from typing import Any

from config.api.schema.fields import PRINTABLE, REQUEST_ID, integer, text
from config.api.versions.table import Version
from config.api.views import Conventions
from config.api.viewsets import ResourceViewSet
from config.api.writing import idempotency
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import ErrorCode

# Before the name of a component that every answer has which refers to it.
REQUIRED = "Required-"

_HEADERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Request-Id": ("Finds the request in the log.", REQUEST_ID),
    "API-Version": ("The version that this is an answer of.", text(10, "^[0-9]+$")),
    "Vary": ("The request headers that had a part in the answer.", text(1024)),
    "Cache-Control": ("Who may keep the answer.", text(64)),
    "Allow": ("The methods of this address.", text(64, "^[A-Z]+(, [A-Z]+)*$")),
    "RateLimit-Policy": ("The quota: `q` requests in `w` seconds.", text(64, '^"[a-z]+";q=[0-9]+;w=[0-9]+$')),
    "RateLimit": ("`r` requests are left for `t` seconds.", text(64, '^"[a-z]+";r=[0-9]+;t=[0-9]+$')),
    "Access-Control-Allow-Origin": ("Told to the origins that the operator named.", text(1024)),
    "Access-Control-Expose-Headers": ("The headers that a script of another origin may read.", text(1024)),
    "Deprecation": ("From when on the version is deprecated (RFC 9745).", text(16, "^@[0-9]+$")),
    "Sunset": ("When the version ends (RFC 8594).", text(29, "^[A-Z][a-z]{2}, .* GMT$")),
    "Link": ("Links of the page, of the version's notice, and to what an error means (RFC 8288).", text(262_144)),
    "ETag": ("The strong entity tag of these bytes.", text(80, '^"[0-9a-z-]+"$')),
    "Location": ("The address of what was made.", text(1024, "^/")),
    "Content-Location": ("The address of what the body represents.", text(32_768, "^/")),
    "X-Total-Count": ("The total of a list that is asked for without its envelope.", integer()),
    idempotency.REPLAYED: ("On the answer to a retry: nothing was made now.", {"type": "boolean", "const": True}),
    "Retry-After": ("The seconds to wait.", integer(1, 86_400)),
    "WWW-Authenticate": ("The schemes by which to authenticate, and what is missing.", text(256, PRINTABLE)),
    "Accept": ("The media types that a body may have.", text(256)),
    "Accept-Patch": ("The media types that a PATCH may have.", text(256)),
    "Accept-Encoding": ("The content codings that a body may have.", text(64)),
}
COMPONENTS: dict[str, dict[str, Any]] = {
    f"{prefix}{name}": {"description": description, "required": bool(prefix), "schema": schema}
    for name, (description, schema) in _HEADERS.items()
    for prefix in ("", REQUIRED)
}


def refer(always: tuple[str, ...] = (), sometimes: tuple[str, ...] = ()) -> dict[str, Any]:
    told = {name: name for name in sometimes} | {name: f"{REQUIRED}{name}" for name in always}
    return {name: {"$ref": f"#/components/headers/{component}"} for name, component in told.items()}


def of_service() -> dict[str, Any]:
    """What every answer has, whatever gives it."""
    return refer(
        ("Request-Id", "Cache-Control"),
        ("Vary", "Allow", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"),
    )


def of_quota() -> dict[str, Any]:
    return refer(sometimes=("RateLimit-Policy", "RateLimit"))


def of_version(version: Version) -> dict[str, Any]:
    notice = ("Deprecation", *(("Sunset",) if version.sunset else ()), "Link") if version.deprecated else ()
    return refer(("API-Version", "Vary", *notice))


def of_success(view: Any, method: str, status: int) -> dict[str, Any]:
    """What the answer carries because of what was done."""
    always: list[str] = []
    sometimes: list[str] = []
    if method == "GET" and isinstance(view, Conventions):
        always.append("ETag")
    if not isinstance(view, ResourceViewSet):
        return refer(tuple(always))
    if view.action == "list":
        always.append("Link")
        sometimes.append("X-Total-Count")
    if status == 201:
        always.append("Location")
        if view.idempotency in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED}:
            # A stored answer is no representation of what is there now, and has no tag.
            sometimes += [idempotency.REPLAYED, "ETag"]
        elif "no-store" not in view.cache_control:
            always.append("ETag")
    if method in {"PUT", "PATCH"}:
        always += ["ETag", "Content-Location"]
    return refer(tuple(always), tuple(sometimes))


def of_error(view: Any, status: int, codes: tuple[ErrorCode, ...]) -> dict[str, Any]:
    always = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}.get(status, ())
    sometimes: tuple[str, ...] = {415: ("Accept", "Accept-Patch", "Accept-Encoding")}.get(status, ())
    if ErrorCode.INSUFFICIENT_SCOPE in codes:
        sometimes += ("WWW-Authenticate",)
    if ErrorCode.IDEMPOTENCY_IN_PROGRESS in codes:
        sometimes += ("Retry-After",)
    # Of OAuth's errors some lead nowhere: those that are OAuth's own.
    return refer((*always, "Link"), sometimes) if isinstance(view, Conventions) else refer(always, (*sometimes, "Link"))
