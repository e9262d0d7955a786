"""Where webhooks must not lead, and where a connection goes."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import pytest

from config.events.webhooks.addresses import AddressRefused, check_url
from config.events.webhooks.outcomes import Outcome
from config.events.webhooks.sending import Sender
from tests.events.webhooks.receiver import Receiver, watched_connections

PORT = 8443
PUBLIC = "93.184.216.34"


def _split(words: str) -> list[str]:
    return words.split()


_LITERALS_V4 = _split("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8 192.0.0.170
192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
""")
_LITERALS_V6 = _split("""
:: ::1 0:0:0:0:0:0:0:1 ::127.0.0.1 ::7f00:1 ::10.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:93.184.216.34 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::7f00:1
64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::10.0.0.1 64:ff9b:1:a00:1:: 100::1 100:0:0:1::1 2001::1
2001:0:53aa:64c:0:7f00:1:1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2001:db8:ffff::1 2002:7f00:1::1 2002:a00:1::1
2002:a9fe:a9fe::1 2002:c0a8:101::1 2620:4f:8000::1 3fff::1 5f00::1 fc00::1 fd00::1 fd00:ec2::254 fd12:3456:789a::1
fe80::1 fe80::a9fe:a9fe febf::1 fec0::1 feff::1 ff00::1 ff02::1 ff02::fb ff05::1:3 ff0e::1 4000::1 8000::1
""")
# Forms of an address that some parsers read as one.
_NUMBERS = _split("""
2130706433 2130706433. 017700000001 0x7f000001 0x7F000001 0x7f.1 0x7f.0.0.1 0x7f.0x0.0x0.0x1 0177.0.0.1 0177.0.0.01
00177.0.0.1 127.1 127.0.1 127.0.0.1. 127.0.0.01 127.0.0.001 127.00.0.1 0127.0.0.1 127.0.0.0x1 127.0x0.0.1 1.0x7f
2852039166 0xa9fea9fe 0251.0376.0251.0376 0xa9.0xfe.0xa9.0xfe 169.254.43518 169.16689662 3232235521 0xc0a80001
167772161 0x0a000001 012.0.0.1 10.1 0 00 0x0 0. 0x 4294967295 4294967296 256.256.256.256 127.0.0.256 1.2.3 1.2.3.4.5
0.0.0.0.0 127.0.0.1.0 127.0.0 999 example.0x7f example.1 127.0.0.1.1
""")
_NAMES = _split("""
localhost LOCALHOST localhost. metadata postgres kubernetes a -example.com example-.com .example.com example..com
exa_mple.com
""")
_URLS = _split(f"""
http://93.184.216.34:{PORT}/ http://example.com:{PORT}/ ftp://example.com/ file:///etc/passwd gopher://example.com:{PORT}/
//example.com:{PORT}/ example.com:{PORT} https:/example.com https:example.com https:///example.com https://:{PORT}/
https://user@example.com/ https://user:word@example.com/ https://127.0.0.1:{PORT}@example.com/
https://example.com@127.0.0.1:{PORT}/ https://example.com:443@127.0.0.1:{PORT}/ https://example.com%40127.0.0.1:{PORT}/
https://example.com\\@127.0.0.1:{PORT}/ https://127.0.0.1:{PORT}\\@example.com/ https://example.com#@127.0.0.1:{PORT}/
https://127.0.0.1:{PORT}#@example.com/ https://example.com/#fragment https://%31%32%37.0.0.1:{PORT}/
https://127%2e0%2e0%2e1:{PORT}/ https://[::1%25lo]:{PORT}/ https://[fe80::1%25eth0]:{PORT}/ https://[::1 https://::1]:{PORT}/
https://[::1].example.com:{PORT}/ https://[v1.::1]:{PORT}/ https://[127.0.0.1]:{PORT}/ https://[1::2::3]:{PORT}/
https://①②⑦.0.0.1:{PORT}/ https://127。0。0。1:{PORT}/ https://１２７.0.0.1:{PORT}/ https://ⓛocalhost:{PORT}/
https://exämple.com/ https://example.com:22/ https://example.com:25/ https://example.com:80/ https://example.com:442/
https://example.com:444/ https://example.com:1023/ https://example.com:0/ https://example.com:65536/
https://example.com:99999/ https://example.com:-1/ https://example.com:44x3/ https://example.com:443:{PORT}/
https://93.184.216.34:80/ jar:https://127.0.0.1:{PORT}/ javascript:alert(1) data:,x
httpſ://93.184.216.34/ https://ſtripe.com/ https://Kelvin.com/ https://mıcrosoft.com/
unix:///run/x.sock https+unix://x https://user:@example.com/ https://@example.com/ https://@127.0.0.1:{PORT}/
""")
HOSTILE = [
    *(f"https://{host}:{PORT}/hook" for host in (*_LITERALS_V4, *_NUMBERS, *_NAMES)),
    *(f"https://[{host}]:{PORT}/hook" for host in _LITERALS_V6),
    *_URLS,
    f"https://127.0.0.1:{PORT}/\r\nHost: example.com",
    f" https://127.0.0.1:{PORT}/",
    "https://example.com\t.localhost/",
    "",
    f"https://example.com/{'a' * 2_000}",
]
# Of a name, which looks like any other one.
ANSWERS = [*_LITERALS_V4, *_LITERALS_V6]


async def _send(*urls: str) -> list[Outcome]:
    sender = Sender()
    try:
        return [await sender.send(url, {}, b"{}") for url in urls]
    finally:
        sender.close()


def send(*urls: str) -> list[Outcome]:
    return asyncio.run(_send(*urls))


def resolve_to(monkeypatch: Any, *answers: list[str]) -> list[str]:
    """Gives each look-up the next of the answers, and the last one for ever. Returns the names that are asked."""
    asked: list[str] = []

    def answer(host: str, *arguments: object, **options: object) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]

    monkeypatch.setattr("config.events.webhooks.addresses.socket.getaddrinfo", answer)
    return asked


@pytest.fixture(autouse=True)
def production(settings: Any) -> None:
    settings.LOCAL = False


@pytest.fixture
def anywhere() -> Any:
    """A listener on the port, at every address of the machine."""
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        server.settimeout(0)
        yield server


def test_hostile_urls_are_refused_and_nothing_connects_to_them(anywhere):
    assert len(HOSTILE) >= 200
    accepted = []
    for url in HOSTILE:
        try:
            check_url(url)
        except AddressRefused:
            continue
        accepted.append(url)
    assert not accepted
    with watched_connections() as connections:
        literals = [url for url in HOSTILE if any(f"//{host}:" in url or f"//[{host}]:" in url for host in ANSWERS)]
        assert [outcome.status for outcome in send(*literals)] == [None] * len(literals)
    assert connections == []
    with pytest.raises(BlockingIOError):
        anywhere.accept()


def test_name_that_leads_inside_is_refused_and_nothing_connects(monkeypatch, anywhere):
    answers = [[address.partition("%")[0]] for address in ANSWERS]
    # Of several addresses each must be allowed.
    resolve_to(monkeypatch, *answers, [PUBLIC, "10.0.0.1"])
    with watched_connections() as connections:
        outcomes = send(*[f"https://hook.example.com:{PORT}/"] * (len(answers) + 1))
    assert {outcome.error for outcome in outcomes} == {"The address is not a public one."}
    assert connections == []
    with pytest.raises(BlockingIOError):
        anywhere.accept()


def test_name_whose_answer_changes_is_connected_to_where_it_was_checked(monkeypatch, settings):
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.2/32"]
    asked = resolve_to(monkeypatch, ["127.0.0.2"], ["127.0.0.1"])
    url = f"https://hook.example.com:{PORT}/"
    with watched_connections() as connections:
        first, second = send(url, url)
    assert [address[:2] for address in connections] == [("127.0.0.2", PORT)]
    assert (first.status, "ConnectError" in first.error) == (None, True)
    assert (second.status, second.error) == (None, "The address is not a public one.")
    assert asked == ["hook.example.com"] * 2


def test_name_is_looked_up_as_it_stands_in_the_url(monkeypatch):
    """Decoded and encoded again, it is another one in the older standard of the standard library: strasse.de."""
    asked = resolve_to(monkeypatch, ["10.0.0.1"])
    send("https://xn--strae-oqa.de/", "https://EXAMPLE.com./")
    assert asked == ["xn--strae-oqa.de", "example.com."]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://EXAMPLE.com./hook?a=1&b=%20",
        "https://xn--exmple-cua.com:1024/",
        f"https://{PUBLIC}:65535/",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/",
        "https://1e100.net/",
        "https://10.0.0.1.example.com:8443/",
    ],
)
def test_public_urls_are_accepted(url):
    check_url(url)


def test_allowed_networks_are_an_exception(settings):
    settings.WEBHOOK_ALLOWED_NETWORKS = ["10.1.0.0/16", "fd00::/8"]
    for host in ("10.1.2.3", "[fd00::1]"):
        check_url(f"https://{host}/")
    for host in ("10.2.0.1", "[fc00::1]", "127.0.0.1"):
        with pytest.raises(AddressRefused, match="not a public one"):
            check_url(f"https://{host}/")


@pytest.mark.parametrize(
    ("url", "is_accepted"),
    [
        (f"http://127.0.0.1:{PORT}/", True),
        (f"http://[::1]:{PORT}/", True),
        (f"http://localhost:{PORT}/", True),
        (f"http://10.0.0.1:{PORT}/", False),
        (f"http://{PUBLIC}:{PORT}/", False),
        ("http://127.0.0.1/", False),
        (f"https://127.0.0.1:{PORT}/", False),
    ],
)
def test_http_is_for_loopback_of_a_local_service(settings, url, is_accepted):
    settings.LOCAL = True
    if is_accepted:
        check_url(url)
    else:
        with pytest.raises(AddressRefused):
            check_url(url)
    settings.LOCAL = False
    with pytest.raises(AddressRefused):
        check_url(url)


def test_local_name_that_leads_elsewhere_is_refused(settings, monkeypatch):
    settings.LOCAL = True
    resolve_to(monkeypatch, ["127.0.0.1", "10.0.0.1"])
    with watched_connections() as connections:
        (outcome,) = send(f"http://hook.example.com:{PORT}/")
    assert (outcome.error, connections) == ("http is for loopback addresses of a local service.", [])


def test_address_that_does_not_answer_leaves_the_turn_to_the_next(settings, monkeypatch):
    settings.LOCAL = True
    with Receiver().running() as receiver:
        resolve_to(monkeypatch, ["127.0.0.9", "127.0.0.1"])
        (outcome,) = send(f"http://localhost:{receiver.port}/")
    assert outcome.status == 204
    assert ip_address(PUBLIC).is_global
