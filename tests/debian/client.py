#!/usr/bin/python3
"""What a browser and strangers see of the installation, asked for with Debian's Python alone."""

import json
import re
import ssl
import sys
from http.client import HTTPConnection, HTTPSConnection
from http.cookiejar import MozillaCookieJar
from pathlib import Path
from socket import create_connection
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

domain, email, password, *addresses = sys.argv[1:]


def sign_in() -> tuple[bool, str]:
    """Whether the session of the last call still lasts; and the title of the admin's first page."""
    kept = Path.home() / "cookies"
    cookies = MozillaCookieJar(kept)
    if kept.exists():
        cookies.load(ignore_discard=True)
    browser = build_opener(HTTPCookieProcessor(cookies))
    with browser.open(f"https://{domain}/admin/") as answer:
        address, page = answer.url, answer.read().decode()
    if address == f"https://{domain}/admin/":
        cookies.save(ignore_discard=True)
        return True, find_title(page)
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[:1]
    form = {"csrfmiddlewaretoken": token, "username": email, "password": password, "next": "/admin/"}
    request = Request(address, urlencode(form).encode(), {"Referer": address})  # noqa: S310 - https, as above
    with browser.open(request) as answer:
        title = find_title(answer.read().decode())
    cookies.save(ignore_discard=True)
    return False, title


def find_title(page: str) -> str:
    return re.findall(r"<title>\s*(.*?)\s*\|", page)[0]


def get_status(address: str, path: str) -> int:
    """What a client of an address is answered."""
    context = ssl.create_default_context()
    connection = HTTPSConnection(domain, timeout=20, source_address=(address, 0), context=context)
    connection.request("GET", path)
    return connection.getresponse().status


def ask_for_mail() -> int:
    """Has a message sent to the administrator."""
    connection = HTTPSConnection(domain, timeout=20)
    connection.request(
        "POST", "/api/password-resets", json.dumps({"email": email}), {"Content-Type": "application/json"}
    )
    return connection.getresponse().status


def get_protocol() -> str | None:
    """What TLS agrees on with a browser."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with create_connection((domain, 443)) as connection, context.wrap_socket(connection, server_hostname=domain) as tls:
        return tls.selected_alpn_protocol()


def get_plain_status() -> int:
    connection = HTTPConnection(domain, timeout=20)
    connection.request("GET", "/versions")
    return connection.getresponse().status


# The same page in the ways in which a filter of paths is evaded.
paths = ["/admin/login/", "//admin/login/", "/%61dmin/login/", "/x/../admin/login/"]
paths += ["/metrics", "/health/live", "/versions"]
found = {address: [get_status(address, path) for path in paths] for address in addresses}
assert ask_for_mail() == 202
lasts, title = sign_in()
seen = {"lasts": lasts, "title": title, "protocol": get_protocol(), "plain": get_plain_status(), "statuses": found}
print(json.dumps(seen))
