"""Where the machines of the database are: each in a network namespace of its own, or all on loopback.

With a namespace a machine can be cut off from the others and goes on by itself, as one whose cable was pulled. Only
root may make namespaces.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

NAMESPACES, INTERFACES = Path("/run/netns"), Path("/sys/class/net")
MACHINES = 3
# For tests of networks (RFC 2544): nobody routes these addresses.
RANGE = ipaddress.IPv4Network("198.18.0.0/15")


@dataclass(frozen=True)
class Network:
    """The addresses of an installation.

    Attributes:
        addresses: of the machines of the database.
        clients: the address from which everything else connects to them.
        everyone: all of these, as a network.
        switch: the namespace in which the machines are joined.
        namespaces: of the machines, by address; none on loopback.
    """

    addresses: Sequence[str]
    clients: str
    everyone: str
    switch: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)

    def cut_off(self, address: str) -> None:
        """Takes a machine from the others, whose connections to it stay open, and get no answer."""
        _ip("-n", self.switch, "link", "set", self.namespaces[address], "down")

    def join(self, address: str) -> None:
        """Brings back a machine that was cut off."""
        _ip("-n", self.switch, "link", "set", self.namespaces[address], "up")


LOOPBACK = Network([f"127.0.1.{number}" for number in range(1, MACHINES + 1)], "127.0.0.1", "127.0.0.0/8")


@contextmanager
def connect(name: str) -> Iterator[Network]:
    """Makes the namespaces, where this is root's and the machine can, and removes them after the block.

    Args:
        name: which the names of all that is made begin with, 14 bytes at most. What a process has left that was
            killed is removed before.

    Yields:
        the network, on loopback where there are no namespaces.

    Raises:
        SystemExit: another process has a network of this name.
    """
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(f"\0{name}")
        except OSError:
            sys.exit(f"Another process on this machine has the network {name} already.")
        if os.geteuid() != 0 or not shutil.which("ip"):
            yield LOOPBACK
            return
        try:
            _remove(name)
            try:
                network = _make(name)
            except subprocess.CalledProcessError as error:
                print(f"No network namespaces: {error.stderr.strip()}", file=sys.stderr)
                network = LOOPBACK
            yield network
        finally:
            _remove(name)


def _make(name: str) -> Network:
    subnet = _find_subnet()
    clients, *addresses = [str(subnet[number]) for number in range(1, MACHINES + 2)]
    namespaces = {address: f"{name}{number}" for number, address in enumerate(addresses, 1)}
    # A namespace of its own for the bridge, too, so that no firewall of this machine is between two of them.
    network = Network(addresses, clients, str(subnet), f"{name}0", namespaces)
    for namespace in (network.switch, *namespaces.values()):
        _ip("netns", "add", namespace)
    _ip("-n", network.switch, "link", "add", "bridge", "up", "type", "bridge")
    _ip("link", "add", name, "type", "veth", "peer", name, "netns", network.switch)
    for namespace in namespaces.values():
        _ip("-n", network.switch, "link", "add", namespace, "type", "veth", "peer", name, "netns", namespace)
    for interface in (name, *namespaces.values()):
        _ip("-n", network.switch, "link", "set", interface, "up", "master", "bridge")
    for address in (clients, *addresses):
        where = ["-n", namespaces[address]] if address in namespaces else []
        _ip(*where, "address", "add", f"{address}/{subnet.prefixlen}", "dev", name)
        _ip(*where, "link", "set", name, "up")
        # By which a machine reaches its own address.
        _ip(*where, "link", "set", "lo", "up")
    return network


def _find_subnet() -> ipaddress.IPv4Network:
    """One to which no route of this machine leads, but that to everywhere."""
    routes = [route["dst"] for route in json.loads(_ip("-json", "-4", "route", "show"))]
    taken = [ipaddress.IPv4Network(route) for route in routes if route != "default"]
    return next(one for one in RANGE.subnets(new_prefix=24) if not any(one.overlaps(other) for other in taken))


def _remove(name: str) -> None:
    # Gone at once. With its namespace it would go some time later, when its name may be wanted again.
    if (INTERFACES / name).exists():
        _ip("link", "delete", name)
    for namespace in (f"{name}{number}" for number in range(MACHINES + 1)):
        if (NAMESPACES / namespace).exists():
            _ip("netns", "delete", namespace)


def _ip(*arguments: str) -> str:
    # In a session of its own, so that Ctrl-C does not reach it.
    run = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True, start_new_session=True)
    return run.stdout
