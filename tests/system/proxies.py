"""The proxies of deploy/, as Debian packages them, in front of a service."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from tempfile import TemporaryFile
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.service import CHECKOUT, wait_for

HOST = "localhost"
# Of two workers.
MAX_REQUESTS = 264
_LIMIT_OF_AN_ADDRESS = "limit_conn client_connections 64;"
# The numbers are what an operator gives a proxy with many clients.
_NGINX = (
    "daemon off; pid $folder/pid; error_log stderr; worker_processes 2; worker_rlimit_nofile 20000; "
    "events { worker_connections 8000; } http { access_log off; $temporary include $site; }"
)
_TEMPORARY = "".join(
    f"{kind}_temp_path $folder/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


class Certificate(NamedTuple):
    """The files of a certificate, and of its key."""

    certificate: Path
    key: Path


class Ports(NamedTuple):
    http: int
    https: int


def find_program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


def make_certificate(folder: Path, host: str = HOST) -> Certificate:
    key, name = generate_private_key(SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, SHA256())
    )
    files = Certificate(folder / "tls.crt", folder / "tls.key")
    files.certificate.write_bytes(made.public_bytes(Encoding.PEM))
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def configure_nginx(
    folder: Path, ports: Ports, upstreams: Sequence[str], certificate: Certificate, *, is_busy: bool = False
) -> list[str]:
    """Writes deploy/nginx.conf, filled in, into a folder. Returns the arguments of nginx that use it.

    Args:
        folder: of nginx.
        ports: that it listens on.
        upstreams: addresses of services, each of which becomes a server of the upstream.
        certificate: that it shows.
        is_busy: whether it is for thousands of clients, all of which have the address of this machine: it has no limit.
    """
    site = (CHECKOUT / "deploy/nginx.conf").read_text()
    site = re.sub(r"listen \[::\]:.*", "", site)
    site = site.replace("/var/log/nginx/error.log", "stderr").replace(
        "/var/log/nginx/access.log", str(folder / "access")
    )
    if is_busy:
        assert _LIMIT_OF_AN_ADDRESS in site
        site = site.replace(_LIMIT_OF_AN_ADDRESS, "")
    for server in [line for line in site.splitlines() if "server 127.0.0.1:8000" in line]:
        site = site.replace(server, "\n".join(server.replace("127.0.0.1:8000", upstream) for upstream in upstreams), 1)
    live = "/etc/letsencrypt/live/users-service"
    site = site.replace(f"{live}/fullchain.pem", str(certificate.certificate))
    site = site.replace(f"{live}/privkey.pem", str(certificate.key))
    site = site.replace("listen 80 ", f"listen {ports.http} ").replace("listen 443 ", f"listen {ports.https} ")
    if _get_nginx_version() < (1, 25, 1):
        # As Debian 12 has it.
        site = site.replace("http2 on;", "").replace(" ssl default_server;", " ssl http2 default_server;")
    (folder / "site").write_text(site)
    main = Template(_NGINX).substitute(
        folder=folder, site=folder / "site", temporary=Template(_TEMPORARY).substitute(folder=folder)
    )
    # Its workers write long bodies into this folder, which root may have closed to others.
    (folder / "main").write_text(main if os.geteuid() else f"user root; {main}")
    return ["-e", "stderr", "-p", str(folder), "-c", str(folder / "main")]


def _get_nginx_version() -> tuple[int, ...]:
    program = find_program("nginx")
    if program is None:
        return ()
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    return tuple(int(number) for number in re.findall(r"nginx/([\d.]+)", told)[0].split("."))


@contextmanager
def run_proxy(command: Sequence[str], port: int, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a proxy during the block; its log is shown when it does not start."""
    environment = {"PATH": os.environ["PATH"], **variables}
    # A file, which takes any number of lines: nobody reads them before the end.
    with TemporaryFile() as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process:
        try:

            def listens() -> bool:
                assert process.poll() is None, os.pread(log.fileno(), 10_000, 0).decode()
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            wait_for(listens)
            yield process
        finally:
            process.terminate()
            process.wait(timeout=20)
