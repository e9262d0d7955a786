"""The headers of responses."""

from collections.abc import Mapping
from functools import lru_cache

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers


def set_headers(response: HttpResponse, headers: Mapping[str, str]) -> None:
    """Puts headers on a response, in the place of those that it has under the same names."""
    for name, value in headers.items():
        response.headers[name] = value


def set_default_headers(response: HttpResponse, headers: Mapping[str, str]) -> None:
    """Puts those headers on a response that it does not have yet."""
    for name, value in headers.items():
        response.headers.setdefault(name, value)


def vary_on(response: HttpResponse, *names: str) -> None:
    """Says in `Vary` that the response depends on these headers of the request."""
    response.headers["Vary"] = merge_vary(response.headers.get("Vary"), names)


# Few combinations occur, and each of them on most of the responses.
@lru_cache(maxsize=256)
def merge_vary(present: str | None, names: tuple[str, ...]) -> str:
    response = HttpResponse(headers={} if present is None else {"Vary": present})
    patch_vary_headers(response, names)
    return response.headers["Vary"]


def format_links(links: Mapping[str, Mapping[str, str]]) -> str:
    """The value of a `Link` header (RFC 8288) for links such as `{"next": {"href": "/users?page=2"}}`."""
    return ", ".join([f'<{link["href"]}>; rel="{relation}"' for relation, link in links.items()])
