"""The service behind the proxies of deploy/, as Debian packages them: TLS, addresses, and what each of them refuses."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.service import CHECKOUT, Copy, Service, find_free_port, get_key, wait_for
from tests.system.proxies import (
    HOST,
    MAX_REQUESTS,
    Certificate,
    Ports,
    configure_nginx,
    find_program,
    make_certificate,
    run_proxy,
)

PROXIES = ("nginx", "caddy")
# Requests at the same time.
MAX_OF_AN_ADDRESS = 64


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


class Proxy:
    def __init__(self, ports: Ports, certificate: Path, log: Path) -> None:
        self.http, self.https = ports
        self.log = log
        self.context = ssl.create_default_context(cafile=str(certificate))

    def connect(self, address: str = "127.0.0.1") -> HTTPSConnection:
        return HTTPSConnection(HOST, self.https, timeout=20, context=self.context, source_address=(address, 0))

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[HTTPResponse, Any]:
        connection = self.connect()
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response, json.loads(response.read() or b"null")
        finally:
            connection.close()


@contextmanager
def run_in_front_of(name: str, upstream: str, ports: Ports, certificate: Certificate, folder: Path) -> Iterator[None]:
    """Runs the proxy of that name for the block."""
    program = find_program(name)
    if program is None:
        pytest.skip(f"There is no {name} on this machine.")
    if name == "nginx":
        with run_proxy([program, *configure_nginx(folder, ports, [upstream], certificate)], ports.https):
            yield
        return
    settings = {
        "UPSTREAM": upstream,
        "SERVER_NAME": HOST,
        "TLS_CERTIFICATE": str(certificate.certificate),
        "TLS_KEY": str(certificate.key),
        "HTTP_PORT": str(ports.http),
        "HTTPS_PORT": str(ports.https),
        "HOME": str(folder),
    }
    command = [program, "run", "--adapter", "caddyfile", "--config", str(CHECKOUT / "deploy/Caddyfile")]
    with run_proxy(command, ports.https, **settings):
        yield


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest,
    checkout: Copy,
    first_start: list[str],
    certificate: Certificate,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    """A proxy in front of the service, which trusts it."""
    ports = Ports(find_free_port(), find_free_port())
    variables = {
        "LOCAL": "true",
        "PUBLIC_URL": f"https://{HOST}:{ports.https}",
        "ALLOWED_HOSTS": HOST,
        "TRUSTED_PROXIES": "1",
    }
    service = Service(checkout, **variables)
    try:
        folder = tmp_path_factory.mktemp("proxy")
        with run_in_front_of(request.param, f"127.0.0.1:{service.port}", ports, certificate, folder):
            yield Proxy(ports, certificate.certificate, service.log)
    finally:
        service.stop()


@pytest.fixture
def key(first_start: list[str]) -> dict[str, str]:
    return {"X_API_Key": get_key(first_start)}


def test_answer_passes_unchanged_and_asks_for_https_for_ever(proxy: Proxy, key: dict[str, str]) -> None:
    response, body = proxy.ask("/api/v2/users/1", **key)
    assert (response.status, body["success"]) == (200, True)
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
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


def test_nginx_logs_no_credential_of_an_address(certificate: Certificate, tmp_path: Path) -> None:
    ports = Ports(find_free_port(), find_free_port())
    with run_in_front_of("nginx", f"127.0.0.1:{find_free_port()}", ports, certificate, tmp_path):
        for made in (
            HTTPConnection(HOST, ports.http, timeout=10),
            Proxy(ports, certificate.certificate, tmp_path).connect(),
        ):
            with closing(made) as connection:
                connection.request("GET", "/versions%20503?api_key=urs_secret")
                connection.getresponse().read()
    lines = (tmp_path / "access").read_text().splitlines()
    assert [line.split()[2:5] for line in lines] == [["GET", "/versions%20503", status] for status in ("403", "503")]


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


def test_client_does_not_choose_the_trace(proxy: Proxy) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    response, _ = proxy.ask("/versions", Traceparent=trace, Tracestate="vendor=1")
    name = f'"request_id":"{response.headers["Request-Id"]}"'
    wait_for(lambda: name in proxy.log.read_text())
    (line,) = (json.loads(line) for line in proxy.log.read_text().splitlines() if name in line)
    assert line["traceparent"] is None


def test_body_that_is_too_long_for_a_proxy_is_refused_in_the_form_of_the_service(
    proxy: Proxy, key: dict[str, str]
) -> None:
    body = b'"' + b"n" * 3 * 1024 * 1024 + b'"'
    response, answer = proxy.ask("/api/v2/users", "POST", body, Content_Type="application/json", **key)
    assert (response.status, answer["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("name", PROXIES)
def test_service_that_does_not_listen_is_told_in_the_form_of_the_service(
    name: str, certificate: Certificate, tmp_path: Path
) -> None:
    ports = Ports(find_free_port(), find_free_port())
    with run_in_front_of(name, f"127.0.0.1:{find_free_port()}", ports, certificate, tmp_path):
        response, answer = Proxy(ports, certificate.certificate, tmp_path).ask("/api/v2/users")
    assert (response.status, answer["success"], answer["error"]["code"]) == (503, False, "SERVICE_UNAVAILABLE")
    assert (response.headers["Content-Type"], response.headers["Retry-After"]) == ("application/json", "1")


def test_nginx_asks_a_node_that_is_back_soon_when_the_other_one_is_lost(
    certificate: Certificate, tmp_path: Path
) -> None:
    ports, nodes = Ports(find_free_port(), find_free_port()), [find_free_port() for _ in range(2)]
    program = find_program("nginx")
    if program is None:
        pytest.skip("There is no nginx on this machine.")

    @contextmanager
    def answering(port: int) -> Iterator[None]:
        server = ThreadingHTTPServer(("127.0.0.1", port), SimpleHTTPRequestHandler)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def get_status() -> int:
        with closing(HTTPSConnection(HOST, ports.https, context=context, timeout=30)) as connection:
            connection.request("GET", "/nowhere")
            return connection.getresponse().status

    context = ssl.create_default_context(cafile=certificate.certificate)
    upstreams = [f"127.0.0.1:{port}" for port in nodes]
    command = ["env", f"--chdir={tmp_path}", program, *configure_nginx(tmp_path, ports, upstreams, certificate)]
    with run_proxy(command, ports.https):
        with answering(nodes[0]):
            assert [get_status() for _ in range(4)] == [404] * 4
            began = time.monotonic()
        with answering(nodes[1]):
            wait_for(lambda: get_status() == 404)
            assert time.monotonic() - began < 4


def test_nginx_refuses_what_would_only_wait(certificate: Certificate, tmp_path: Path) -> None:
    ports = Ports(find_free_port(), find_free_port())
    with ExitStack() as opened:
        silent = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=MAX_REQUESTS))
        silent.settimeout(10)
        upstream = f"127.0.0.1:{silent.getsockname()[1]}"
        opened.enter_context(run_in_front_of("nginx", upstream, ports, certificate, tmp_path))
        proxy = Proxy(ports, certificate.certificate, tmp_path)

        def send(path: str, address: str) -> HTTPSConnection:
            connection = opened.enter_context(closing(proxy.connect(address)))
            connection.request("GET", path)
            return connection

        for number in range(MAX_REQUESTS):
            send("/api/v2/users", f"127.0.0.{1 + number // MAX_OF_AN_ADDRESS}")
            opened.enter_context(silent.accept()[0])
        began = time.monotonic()
        response = send("/api/v2/users", "127.0.0.9").getresponse()
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert json.loads(response.read())["error"]["code"] == "SERVICE_UNAVAILABLE"
        assert time.monotonic() - began < 1
        # One more of an address that has enough of its own.
        response, body = proxy.ask("/api/v2/users")
        assert (response.status, response.headers["Retry-After"]) == (429, "1")
        assert body["error"]["code"] == "RATE_LIMITED"
        send("/health/live", "127.0.0.9")
        health = opened.enter_context(silent.accept()[0])
        assert health.recv(100).startswith(b"GET /health/live ")
    lines = (tmp_path / "access").read_text().splitlines()
    assert any(" /api/v2/users 503 " in line and "upstream=users_service 502" in line for line in lines)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"TRACE / HTTP/1.1\r\nHost: localhost", 405),
        (b"GET / HTTP/1.1", 400),
        (b"GET /%s HTTP/1.1\r\nHost: localhost" % (b"x" * 20_000), 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s" % (b"x" * 20_000), 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip", 501),
        (b"GET / HTTP/3.0\r\nHost: localhost", 505),
        (b"GET /refused-by-nginx HTTP/1.1\r\nHost: localhost", 404),
    ],
)
def test_what_nginx_does_not_pass_on_is_refused_in_the_form_of_the_service(
    request_line: bytes, status: int, certificate: Certificate, tmp_path: Path
) -> None:
    ports = Ports(find_free_port(), find_free_port())
    with run_in_front_of("nginx", f"127.0.0.1:{find_free_port()}", ports, certificate, tmp_path):
        context = ssl.create_default_context(cafile=str(certificate.certificate))
        with context.wrap_socket(socket.create_connection((HOST, ports.https), 10), server_hostname=HOST) as connection:
            connection.sendall(request_line + b"\r\n\r\n")
            response = HTTPResponse(connection)
            response.begin()
            assert (response.status, response.headers["Content-Type"]) == (status, "application/json")
            assert json.loads(response.read())["success"] is False
