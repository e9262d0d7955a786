"""The address a request comes from."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings


def client_address(request: Any) -> IPv4Address | IPv6Address:
    """The client's address, with X-Forwarded-For believed from as many proxies as TRUSTED_PROXIES says.

    Each trusted proxy appends the address it was called from, so the entry that counts is that many from the end.
    """
    chain = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    chain = [*filter(None, chain), request.META.get("REMOTE_ADDR") or "0.0.0.0"]  # noqa: S104 - a socket without one
    try:
        # A zone, `fe80::1%eth0`, names an interface of the machine that was called; PostgreSQL has no form for it.
        found = ip_address(chain[max(-1 - settings.TRUSTED_PROXIES, -len(chain))].partition("%")[0])
    except ValueError:
        found = ip_address("0.0.0.0")  # noqa: S104
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def is_passed_on(environ: Mapping[str, Any]) -> bool:
    """Whether a request says that it comes from a trusted proxy.

    Args:
        environ: the WSGI environment of the request.
    """
    return bool(settings.TRUSTED_PROXIES) and "HTTP_X_FORWARDED_FOR" in environ


def get_network(address: IPv4Address | IPv6Address) -> str:
    """What is counted as one address: an IPv4 address, or an IPv6 /64, which a single client has to itself."""
    return str(IPv6Network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address)
