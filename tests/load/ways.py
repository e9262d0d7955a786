"""The ways to the service: directly, and behind the proxy of deploy/; and a mix of requests for both."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.load.client import wire
from tests.load.world import Target
from tests.service import find_free_port, open_folder
from tests.system.proxies import Ports, configure_nginx, find_program, make_certificate, run_proxy


class Way(NamedTuple):
    """To the service.

    Attributes:
        name: in the report.
        port: that is asked.
        authority: the file of the certificate that it shows; empty without TLS.
    """

    name: str
    port: int
    authority: str = ""


def ways(target: Target) -> Generator[Way]:
    """Each way in turn; nginx runs while its own is used."""
    yield Way("directly", target.port)
    with open_folder() as folder, _run_nginx(folder, target.port) as way:
        yield way


@contextmanager
def _run_nginx(folder: Path, port: int) -> Iterator[Way]:
    program = find_program("nginx")
    assert program, "This case needs nginx (apt install nginx-light)."
    certificate, ports = make_certificate(folder), Ports(find_free_port(), find_free_port())
    arguments = configure_nginx(folder, ports, [f"127.0.0.1:{port}"], certificate, is_busy=True)
    with run_proxy([program, *arguments], ports.https):
        yield Way("behind nginx", ports.https, str(certificate.certificate))


def build_requests(target: Target) -> Sequence[bytes]:
    """Two reads and a write of each of many people, none of whom has many under way."""
    port, people = target.port, target.people["abandoned"]
    return [
        request
        for person in people
        for request in (
            wire(port, "GET", f"/api/v2/users/{person.id}", person.headers),
            wire(port, "GET", "/api/v2/posts?limit=20", person.headers),
            wire(port, "POST", "/api/v2/orders", person.headers, b'{"item": "Tea", "qty": 1}'),
        )
    ]
