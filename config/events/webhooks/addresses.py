"""The addresses that webhooks may lead to: none inside the network.

A URL is checked when it is set, and the addresses of its name each time that something is sent: the name may lead
elsewhere by then. Whoever sends connects to exactly the address that was checked.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from AntiSSRF.ipaddress_ranges import IPAddressRanges
from django.conf import settings

MAX_URL_LENGTH = 2_000
HTTPS_PORT = 443
# A resolver may take long to give up, in a thread that waits for it.
MAX_LOOKUPS = 512
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Without ASCII, letters of others are equal to some of these when case is ignored: ſ, K (U+212A).
_FLAGS = re.IGNORECASE | re.ASCII
# The authority is a host and a port. What parsers read in different ways, such as a user name, is not in the grammar.
_URL = re.compile(
    r"(https?)://(?:([a-z0-9.-]+)|\[([0-9a-f:.]+:[0-9a-f:.]*)\])(?::([0-9]{1,5}))?(?:[/?][!-\"$-~]*)?", _FLAGS
)
_NAME = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?", _FLAGS)
# If the last label is a number, some parsers read an IPv4 address: 127.1, 0x7f.1, 2130706433.
_NUMBER = re.compile(r"(.*\.)?(0x[0-9a-f]*|[0-9]+)\.?", _FLAGS)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_BLOCKED = [ip_network(text) for text in IPAddressRanges.recommended_latest]


class AddressRefused(Exception):  # noqa: N818 - no fault
    """Raised where a webhook must not lead there. It says why, to its owner."""


def check_url(url: str) -> None:
    """Raises AddressRefused unless a webhook may have this URL."""
    parsed = _URL.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
    if parsed is None:
        raise AddressRefused("Must be a URL such as https://example.com/hook, without a user name or a fragment.")
    scheme, name, literal, port = parsed.groups()
    host, is_plain = name or literal, scheme.lower() == "http"
    if is_plain and not settings.LOCAL:
        raise AddressRefused("Must be an https URL.")
    if (port is None and is_plain) or (port and int(port) != HTTPS_PORT and not 1024 <= int(port) <= 65_535):
        raise AddressRefused("The port must be 443, or from 1024 to 65535.")
    if address := _parse_literal(host):
        check_address(address, is_plain=is_plain)
    elif _NUMBER.fullmatch(host) or ":" in host:
        raise AddressRefused("The host must be a name, or an IP address in its usual form.")
    elif not _NAME.fullmatch(host) and not (is_plain and host == "localhost"):
        raise AddressRefused("The host must be a full domain name.")


def _parse_literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def check_address(address: Address, *, is_plain: bool) -> None:
    """Raises AddressRefused unless a webhook may connect to this address.

    Args:
        is_plain: whether it uses http, which is for loopback on your own machine.
    """
    if is_plain:
        if not (settings.LOCAL and address.is_loopback):
            raise AddressRefused("http is for loopback addresses of a local service.")
    elif not _is_public(address) and not any(address in network for network in _get_allowed_networks()):
        raise AddressRefused("The address is not a public one.")


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        # Among others, each form of an IPv4 address in an IPv6 address.
        return False
    return address.is_global and not any(address in network for network in _BLOCKED)


@cache
def _parse_networks(texts: tuple[str, ...]) -> Sequence[Network]:
    return [ip_network(text) for text in texts]


def _get_allowed_networks() -> Sequence[Network]:
    return _parse_networks(tuple(settings.WEBHOOK_ALLOWED_NETWORKS))


class Resolver:
    """Looks up names, each in one thread at a time: a name that nobody answers for holds up no other."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_LOOKUPS, "resolver")
        self._lookups: dict[str, asyncio.Future[list[Address]]] = {}

    async def resolve(self, host: str, *, is_plain: bool) -> Sequence[Address]:
        """The addresses of a host, each of which has been checked.

        Raises:
            AddressRefused: one of them is not allowed.
            OSError: the name has no address.
        """
        literal = _parse_literal(host)
        addresses = [literal] if literal else await self._look_up(host)
        for address in addresses:
            check_address(address, is_plain=is_plain)
        return addresses

    async def _look_up(self, host: str) -> Sequence[Address]:
        if (lookup := self._lookups.get(host)) is None:
            lookup = asyncio.get_running_loop().run_in_executor(self._threads, look_up, host)
            self._lookups[host] = lookup
            lookup.add_done_callback(lambda _: self._lookups.pop(host))
        # Whoever gives up leaves the others their answer.
        return await asyncio.shield(lookup)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def look_up(host: str) -> list[Address]:
    """The addresses of a name, in the order in which to try them."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A zone, of link-local addresses, is not part of the address.
    return list(dict.fromkeys(ip_address(str(address[0]).partition("%")[0]) for *_, address in found))
