"""The address a request comes from."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings


def client_address(request: Any) -> IPv4Address | IPv6Address:
    """The client's address."""
    environ = request.META
    return find_address(environ.get("HTTP_X_FORWARDED_FOR"), environ.get("REMOTE_ADDR", ""), settings.TRUSTED_PROXIES)


@lru_cache(maxsize=1024)
def find_address(forwarded: str | None, remote: str, proxies: int) -> IPv4Address | IPv6Address:
    """The client's address, with X-Forwarded-For believed from as many proxies as there are.

    Each trusted proxy appends the address it was called from, so the entry that counts is that many from the end. Where
    that entry is no address, the proxy that wrote it counts as the client: the next entry is that proxy's address.

    Args:
        forwarded: X-Forwarded-For.
        remote: the address that the request came from.
        proxies: TRUSTED_PROXIES.
    """
    chain = [*(forwarded.split(",") if forwarded else ()), remote]
    entries = chain[max(-1 - proxies, -len(chain)) :]
    return next((found for entry in entries if (found := _parse_address(entry))), IPv4Address(0))


def _parse_address(entry: str) -> IPv4Address | IPv6Address | None:
    """The address in an entry of X-Forwarded-For; None for `unknown` and its like.

    There is no standard. Proxies write the bare address, or add a port, brackets and quotes as in RFC 7239, section 6.
    """
    text = entry.strip(' \t"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        # A zone, `fe80::1%eth0`, names an interface of the machine that was called; PostgreSQL has no form for it.
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def get_network(address: IPv4Address | IPv6Address) -> str:
    """The unit that counts as one address: an IPv4 address, or an IPv6 /64, which belongs to a single client."""
    return str(IPv6Network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address)
