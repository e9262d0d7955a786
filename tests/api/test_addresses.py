"""Addresses: ids that are none, trailing slashes, and paths made to be misread."""

from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest

from tests.api.wire import error_of, send
from tests.conftest import Caller

NO_IDS = ["0", "-1", "-0", "+1", "1.0", "1.", "1e1", "٢", "１", "²", "0x1", "1_0", "abc", "null", "true", "None", "*"]
NO_IDS += [
    str(2**63),
    str(2**64 + 1),
    str(10**18 * 10),
    "9" * 40,
    "1" * 5_000,
    "\x00",
    "1\x00",
    "\n",
    "1\n",
    " ",
    " 1",
    "1 ",
]
NO_IDS += [
    *("\ufeff1", "1\u200b", "\u00a01", "😀", "..", "%", "1%", "1;2", "1,2", "1?x", "1#x", "'", "1'--", "()", "me"),
    "\x7f",
]


def escaped(text: str) -> str:
    return quote(text, safe="")


def test_id_that_is_no_positive_64_bit_integer_is_not_found(admin: Caller) -> None:
    for path in ["/orders/{}", "/api/v1/users/{}", "/users/{}/posts"]:
        for bad in NO_IDS:
            error_of(send("GET", path.format(escaped(bad)), headers=admin.headers), 404, "NOT_FOUND")


def test_path_that_is_no_resource_is_not_found(admin: Caller) -> None:
    for path in [
        *("/users%0A", "/api/v1/users%0A", "/orders%0A", "/users/1/orders%0A", "/Users", "/USERS", "/users;x=1"),
        *("/users%00", "/users%20", "/%20users", "/users.json", "/api/users.json", "/users.", "/api/v1%0A/users"),
        *("/api/v1.0/users", "/api/v/users", "/api/v01/users", "/api/v-1/users", "/api/v1e0/users"),
        *("/api/v٢/users", "/apiv1/users", "/api/v1/api/v1/users", "/users/1/users", "/users/1/orders/1"),
        *("/comments", "/api-key", "/\x00", "/%ff%fe", "/static/../users", "/users/..%2F..%2Fetc%2Fpasswd"),
        *("/static/%00", "/static/nothing.css"),
    ]:
        response = send("GET", path, headers=admin.headers)
        assert response.status_code == 404
        assert b'"success":false' in response.content


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_trailing_slash_is_redirected_by_every_method(db: None, method: str) -> None:
    body = b"" if method in {"GET", "HEAD", "OPTIONS"} else b"{}"
    for path in ("/users", "/users/1", "/users/1/orders", "/api", "/api/v1", "/api/v1/users", "/docs"):
        for slashes in ("/", "//"):
            response = send(method, path + slashes, body, "application/json" if body else "")
            assert (response.status_code, response.headers.get("Location")) == (308, path)
            assert response.headers["Request-Id"]


def test_trailing_slash_keeps_the_query_but_the_key(db: None) -> None:
    for query in [
        *("page=2", "page=2&limit=5", "x=", "x", "x=%C3%BC+%26%23%3D", "x=1&x=2", "=1", "fields=id%2Cname"),
        *("X=%00", "a=//evil.com"),
    ]:
        for sent in (
            query,
            f"api_key=secret&{query}",
            f"{query}&api_key=secret",
            f"{query}&api%5Fkey=secret&api_key=secret2",
        ):
            location = send("GET", f"/users/?{sent}").headers["Location"]
            assert "secret" not in location
            assert urlsplit(location).path == "/users"
            assert parse_qsl(urlsplit(location).query, keep_blank_values=True) == parse_qsl(
                query, keep_blank_values=True
            )


def test_redirect_never_leaves_this_host(db: None) -> None:
    for path in [
        *("//evil.com/", "///evil.com/", "////evil.com//", "//evil.com/%2e%2e/", "/\\evil.com/", "/\\/evil.com/"),
        *("/\t/evil.com/", "//user@evil.com/", "/ /evil.com/", "/http://evil.com/", "//evil.com:80/a/"),
        *("/\r\nX-Evil: 1/", "//", "///"),
    ]:
        response = send("GET", "/", PATH_INFO=path)
        assert response.status_code in {308, 404}
        location = response.headers.get("Location", "/")
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\", "/\t"))
        assert urlsplit(location).netloc == ""
        assert "X-Evil" not in response.headers


def test_redirect_leads_to_the_same_path(db: None) -> None:
    for segment in ["a?b", "a?b=c", "a#b", "100%", "a%2Fb", "a b", "ü", "😀", "a;b", "a&b", 'a"b', "a<b>", "%3F"]:
        location = send("GET", f"/users/{escaped(segment)}/?page=2").headers["Location"]
        parts = urlsplit(location)
        assert unquote(parts.path) == f"/users/{segment}"
        assert (parts.query, parts.fragment) == ("page=2", "")


def test_host_with_an_empty_port_is_that_host(admin: Caller) -> None:
    for path in ["/api/v2/users", "/openapi.json", "/admin/login/", "/session/login", "/"]:
        for host in ["testserver:", "localhost:", "127.0.0.1:", "LocalHost:"]:
            assert send("GET", path, HTTP_HOST=host, HTTP_X_API_KEY=admin.headers["X-API-Key"]).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example:", "testserver::", "testserver:x", "testserver:80:", ":", "test server:"]
)
def test_other_host_is_refused(db: None, host: str) -> None:
    assert error_of(send("GET", "/api/v2/versions", HTTP_HOST=host), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "path",
    ["/api%2Fv2/users", "/api/v2%2fusers", "/api/v2/users%2F1", "/static%2Fadmin/css/base.css"],
)
def test_encoded_slash_that_a_server_left_encoded_is_no_separator(admin: Caller, path: str) -> None:
    assert send("GET", "/", PATH_INFO=path, HTTP_X_API_KEY=admin.headers["X-API-Key"]).status_code == 404
