"""The service behind the proxies of deploy/, as Debian packages them: TLS, addresses, and what each of them refuses."""

import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from string import Template
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.server.conftest import CHECKOUT, Copy, Service, wait_for

HOST = "localhost"
NGINX = "daemon off; pid $folder/pid; error_log stderr; events {} http { access_log off; $temporary include $site; }"
TEMPORARY = "".join(
    f"{kind}_temp_path $folder/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of a certificate for localhost, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    key, name = generate_private_key(SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, SHA256())
    )
    files = folder / "tls.crt", folder / "tls.key"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


class Proxy:
    def __init__(self, http: int, https: int, certificate: Path) -> None:
        self.http, self.https = http, https
        self.context = ssl.create_default_context(cafile=str(certificate))

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[HTTPResponse, Any]:
        connection = HTTPSConnection(HOST, self.https, timeout=20, context=self.context)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response, json.loads(response.read() or b"null")
        finally:
            connection.close()


@contextmanager
def run(command: list[str], port: int, **variables: str) -> Iterator[None]:
    """Runs a proxy during the block; its log is shown when it does not start."""
    environment = {"PATH": os.environ["PATH"], **variables}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:

            def listens() -> bool:
                if process.poll() is not None:
                    assert process.stdout
                    pytest.fail(process.stdout.read().decode())
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            wait_for(listens)
            yield
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest,
    checkout: Copy,
    first_start: list[str],
    certificate: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """A proxy in front of the service, which trusts it."""
    program = shutil.which(request.param, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"There is no {request.param} on this machine.")
    folder, http, https = tmp_path_factory.mktemp("proxy"), find_free_port(), find_free_port()
    variables = {
        "LOCAL": "true",
        "PUBLIC_URL": f"https://{HOST}:{https}",
        "ALLOWED_HOSTS": HOST,
        "TRUSTED_PROXIES": "1",
    }
    service = Service(checkout, **variables)
    settings = {
        "UPSTREAM": f"127.0.0.1:{service.port}",
        "SERVER_NAME": HOST,
        "TLS_CERTIFICATE": str(certificate[0]),
        "TLS_KEY": str(certificate[1]),
    }
    if request.param == "nginx":
        site = Template((CHECKOUT / "deploy/nginx.conf").read_text()).safe_substitute(settings)
        site = site.replace("listen 80 ", f"listen {http} ").replace("listen 443 ", f"listen {https} ")
        (folder / "site").write_text(site)
        main = Template(NGINX).substitute(
            folder=folder, site=folder / "site", temporary=Template(TEMPORARY).substitute(folder=folder)
        )
        # Its workers write long bodies into the folder of the test, which root closes to others.
        (folder / "main").write_text(main if os.geteuid() else f"user root; {main}")
        command = [program, "-e", "stderr", "-p", str(folder), "-c", str(folder / "main")]
    else:
        settings |= {"HTTP_PORT": str(http), "HTTPS_PORT": str(https), "HOME": str(folder)}
        command = [program, "run", "--adapter", "caddyfile", "--config", str(CHECKOUT / "deploy/Caddyfile")]
    try:
        with run(command, https, **settings):
            yield Proxy(http, https, certificate[0])
    finally:
        service.stop()


@pytest.fixture
def key(first_start: list[str]) -> dict[str, str]:
    return {"X_API_Key": dict(line.split(": ", 1) for line in first_start)["API key"]}


def test_answer_passes_unchanged_and_asks_for_https_for_ever(proxy: Proxy, key: dict[str, str]) -> None:
    response, body = proxy.ask("/api/v2/users/1", **key)
    assert (response.status, body["success"]) == (200, True)
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    assert response.headers.get_all("Content-Security-Policy") is not None
    assert response.headers["ETag"].startswith('"')
    assert proxy.ask("/api/v2/users/1", If_None_Match=response.headers["ETag"], **key)[0].status == 304


def test_http_2_ends_at_the_edge(proxy: Proxy) -> None:
    proxy.context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with (
            socket.create_connection((HOST, proxy.https), timeout=10) as plain,
            proxy.context.wrap_socket(plain, server_hostname=HOST) as encrypted,
        ):
            assert encrypted.selected_alpn_protocol() == "h2"
    finally:
        proxy.context.set_alpn_protocols(["http/1.1"])


def test_plain_http_is_refused_and_not_redirected(proxy: Proxy, key: dict[str, str]) -> None:
    connection = HTTPConnection(HOST, proxy.http, timeout=10)
    connection.request("GET", "/api/v2/users/1", headers={"X-API-Key": key["X_API_Key"]})
    response = connection.getresponse()
    assert (response.status, response.headers["Location"]) == (403, None)
    connection.close()


def test_client_does_not_choose_its_address(proxy: Proxy, checkout: Copy) -> None:
    body = json.dumps({"email": "nobody@example.com", "password": "wrong"}).encode()
    claims = {"X_Forwarded_For": "192.0.2.7", "X_Forwarded_Proto": "http", "Content_Type": "application/json"}
    assert proxy.ask("/api/login", "POST", body, **claims)[0].status == 401
    with psycopg.connect(Cluster(get_accessible_folder(checkout.folder / ".data/postgresql")).url) as connection:
        found = connection.execute("SELECT address FROM config_auditevent ORDER BY id DESC LIMIT 1").fetchone()
    assert str(found[0]) in {"127.0.0.1", "::1"} if found else False


def test_body_that_is_too_long_is_refused_in_the_words_of_the_service(proxy: Proxy, key: dict[str, str]) -> None:
    body = json.dumps({"name": "n" * 1024 * 1024, "email": "long@example.com"}).encode()
    response, answer = proxy.ask("/api/v2/users", "POST", body, Content_Type="application/json", **key)
    assert (response.status, answer["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_links_keep_to_the_public_origin(proxy: Proxy) -> None:
    _, body = proxy.ask("/.well-known/oauth-authorization-server")
    assert body["issuer"] == f"https://{HOST}:{proxy.https}"
