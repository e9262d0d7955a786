"""Headers that several places of the conventions have a part in."""

from functools import lru_cache

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers


def vary_on(response: HttpResponse, *names: str) -> None:
    """Says that these headers of the request had a part in the answer."""
    response["Vary"] = _vary(response.get("Vary"), names)


# A few different ones, and each of them for most of the answers.
@lru_cache(maxsize=64)
def _vary(present: str | None, names: tuple[str, ...]) -> str:
    response = HttpResponse(headers={} if present is None else {"Vary": present})
    patch_vary_headers(response, names)
    return response["Vary"]
