"""The headers of responses, as components, and which response carries which."""

from collections.abc import Collection
from typing import Any

from config.api.representation.envelope import LINKS
from config.api.schema.fields import PRINTABLE, REQUEST_ID, build_integer, build_string
from config.api.schema.views import has_conditions, takes_dry_run, takes_lines
from config.api.versions.table import Version
from config.api.viewsets import DRY_RUN_HEADER, ResourceViewSet
from config.api.writing.idempotency import REPLAYED, KeyPolicy
from config.http.errors import ErrorCode
from config.http.json import JSONObject

# Prefix of a component for responses that always carry the header.
REQUIRED = "Required-"

_HEADERS: dict[str, tuple[str, JSONObject]] = {
    "Request-Id": ("Identifies the request in the logs.", REQUEST_ID),
    "API-Version": ("The API version of the response.", build_string(10, "^[0-9]+$")),
    "Vary": ("The request headers that affect the response.", build_string(1024)),
    "Cache-Control": ("Caching directives.", build_string(64)),
    "Allow": ("The methods that this endpoint supports.", build_string(64, "^[A-Z]+(, [A-Z]+)*$")),
    "RateLimit-Policy": (
        "The quota: `q` requests per `w` seconds.",
        build_string(64, '^"[a-z]+";q=[0-9]+;w=[0-9]+$'),
    ),
    "RateLimit": (
        "Remaining quota: `r` requests within the next `t` seconds.",
        build_string(64, '^"[a-z]+";r=[0-9]+;t=[0-9]+$'),
    ),
    "Access-Control-Allow-Origin": ("The origin that may read the response.", build_string(1024)),
    "Access-Control-Expose-Headers": ("The headers that scripts of other origins may read.", build_string(1024)),
    "Deprecation": ("When the version is deprecated (RFC 9745).", build_string(16, "^@[0-9]+$")),
    "Sunset": ("When the version ends (RFC 8594).", build_string(29, "^[A-Z][a-z]{2}, .* GMT$")),
    "Link": (
        "Links to other pages, version notices and error descriptions (RFC 8288).",
        build_string(262_144),
    ),
    "ETag": ("The strong entity tag of this representation.", build_string(80, '^"[0-9a-z-]+"$')),
    "Location": ("The URL of the created resource.", build_string(1024, "^/")),
    "Content-Location": ("The URL of the resource in the body.", build_string(32_768, "^/")),
    "X-Total-Count": ("The exact total, if known, of a list without its envelope or of a stream.", build_integer()),
    REPLAYED: ("Present on a replayed response to a retry.", {"type": "boolean", "const": True}),
    DRY_RUN_HEADER: ("Present on the response to a dry run: nothing was changed.", {"type": "boolean", "const": True}),
    "Retry-After": ("Seconds to wait before retrying.", build_integer(1, 86_400)),
    "WWW-Authenticate": (
        "Supported authentication schemes, and what is missing.",
        build_string(256, PRINTABLE),
    ),
    "Accept": ("Supported media types of the body.", build_string(256)),
    "Accept-Patch": ("Supported media types for PATCH.", build_string(256)),
    "Accept-Encoding": ("Supported content codings of the body.", build_string(64)),
}
COMPONENTS: JSONObject = {
    f"{prefix}{name}": {"description": description, "required": bool(prefix), "schema": schema}
    for name, (description, schema) in _HEADERS.items()
    for prefix in ("", REQUIRED)
}
# Headers of a write about the resulting row. A dry run has no address, a replay no entity tag.
_OF_WRITTEN = {
    "POST": ("Location", "ETag"),
    "PUT": ("ETag", "Content-Location"),
    "PATCH": ("ETag", "Content-Location"),
    "DELETE": (),
}


def build_references(always: tuple[str, ...] = (), sometimes: tuple[str, ...] = ()) -> JSONObject:
    """References to header components.

    Args:
        always: the names of the headers that the response has in any case; these win.
        sometimes: the names of those that it may have.

    Returns:
        The `headers` of a response.
    """
    components = {name: name for name in sometimes} | {name: f"{REQUIRED}{name}" for name in always}
    return {name: {"$ref": f"#/components/headers/{component}"} for name, component in components.items()}


# Of all responses of the service, and of those that count against a quota.
COMMON = build_references(
    ("Request-Id", "Cache-Control"), ("Vary", "Allow", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers")
)
QUOTA = build_references(sometimes=("RateLimit-Policy", "RateLimit"))


def get_version_headers(version: Version, codes: Collection[ErrorCode] = ()) -> JSONObject:
    """The headers of a response that tell its version.

    Args:
        version: the version that the document is about.
        codes: the error codes that the response may carry: about an unknown version it gives no notice.

    Returns:
        The `headers` of the response.
    """
    notice = ("Deprecation", *(("Sunset",) if version.sunset else ()), "Link") if version.deprecated else ()
    if ErrorCode.UNSUPPORTED_VERSION in codes:
        return build_references(("API-Version", "Vary"), notice)
    return build_references(("API-Version", "Vary", *notice))


def get_success_headers(view: Any, method: str, status: int) -> JSONObject:
    """The headers that a success response has beside the common ones.

    Args:
        view: the view of the operation.
        method: its HTTP method.
        status: the status of the response.

    Returns:
        The `headers` of the response.
    """
    if not isinstance(view, ResourceViewSet):
        links = ("Link",) if method == "GET" and LINKS in view.own_members else ()
        location = ("Location",) if status == 202 else ()
        return build_references((*(("ETag",) if has_conditions(view, method) else ()), *links), location)
    if method == "GET":
        is_list = view.action == "list"
        return build_references(("ETag", "Link"), ("X-Total-Count",)) if is_list else build_references(("ETag",))
    sometimes: tuple[str, ...] = _OF_WRITTEN[method]
    if method == "POST" and (takes_lines(view, method) or view.idempotency in {KeyPolicy.REQUIRED, KeyPolicy.HONOURED}):
        sometimes += (REPLAYED,)
    if status == 200 and takes_dry_run(view, method):
        sometimes += (DRY_RUN_HEADER,)
    # Many rows have no one address.
    has_address = status == 201 and not takes_lines(view, method)
    return build_references(("Location",) if has_address else (), sometimes)


def get_error_headers(view: Any, status: int, codes: Collection[ErrorCode]) -> JSONObject:
    """The headers that an error response has beside the common ones.

    Args:
        view: the view of the operation; None for an OAuth endpoint.
        status: the status of the response.
        codes: the error codes that it may carry.

    Returns:
        The `headers` of the response.
    """
    always = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}.get(status, ())
    sometimes: tuple[str, ...] = {415: ("Accept", "Accept-Patch", "Accept-Encoding")}.get(status, ())
    if ErrorCode.INSUFFICIENT_SCOPE in codes:
        sometimes += ("WWW-Authenticate",)
    if ErrorCode.IDEMPOTENCY_IN_PROGRESS in codes:
        sometimes += ("Retry-After",)
    # The errors that OAuth defines have no page to link to.
    return build_references((*always, "Link"), sometimes) if view else build_references(always, (*sometimes, "Link"))
