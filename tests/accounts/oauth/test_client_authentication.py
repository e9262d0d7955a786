"""Client authentication, and the responses of the client endpoints to malformed requests."""

import base64

import pytest

from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.server.answers import refuse
from tests.accounts.oauth.actors import FORM, register, send
from tests.api.wire import quickly
from tests.conftest import Caller, new_client

ENDPOINTS = ["/oauth/token", "/oauth/revoke", "/oauth/introspect"]
ACT = {"grant_type": "client_credentials", "scope": "users:read"}


def basic(text):
    return f"Basic {base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()}"


def test_secret_may_come_as_basic_or_in_the_body(machine):
    body = {"client_id": machine.client_id, "client_secret": machine.secret}
    assert send("/oauth/token", ACT | body).status == 200
    for scheme in ("Basic", "basic"):
        pair = basic(f"{machine.client_id}:{machine.secret}").replace("Basic", scheme)
        assert send("/oauth/token", ACT, Authorization=pair).status == 200
        assert send("/oauth/token", ACT | {"client_id": machine.client_id}, Authorization=pair).status == 200


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize(
    "way", ["none", "basic", "body", "unknown client", "garbage", "bearer", "latin", "nul", "id alone"]
)
def test_client_that_does_not_prove_itself_is_401_with_a_challenge(machine, path, way):
    headers = {
        "basic": basic(f"{machine.client_id}:wrong"),
        "unknown client": basic("nobody:wrong"),
        "garbage": "Basic !!!",
        "bearer": "Bearer x",
        "latin": basic(b"\xff:\xff"),
        "nul": basic("a\0b:c"),
    }
    body = {
        "body": {"client_id": machine.client_id, "client_secret": "wrong"},
        "id alone": {"client_id": machine.client_id},
    }
    sent = {"Authorization": headers[way]} if way in headers else {}
    answer = send(path, ACT | {"token": "x"} | body.get(way, {}), **sent)
    assert (answer.status, answer.body["error"]) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ENDPOINTS)
def test_client_that_authenticates_twice_is_refused(machine, path):
    pair = basic(f"{machine.client_id}:{machine.secret}")
    for more in ({"client_id": machine.client_id, "client_secret": machine.secret}, {"client_id": "other"}):
        answer = send(path, ACT | {"token": "x"} | more, Authorization=pair)
        assert (answer.status, answer.body["error"]) == (400, "invalid_request")


def test_public_client_has_no_secret_to_be_right(public):
    for secret in ("x", " "):
        form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": public.client_id}
        assert send("/oauth/token", form | {"client_secret": secret}).status == 401
    assert send("/oauth/token", form, Authorization=basic(f"{public.client_id}:")).status == 401


@pytest.mark.parametrize("path", ENDPOINTS)
def test_wrong_secrets_are_limited_in_oauths_own_words(machine, settings, path):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = 3
    right = basic(f"{machine.client_id}:{machine.secret}")
    for _ in range(5):
        assert send(path, ACT | {"token": "x"}, Authorization=right).status == 200
    for _ in range(3):
        assert send(path, ACT | {"token": "x"}, Authorization=basic(f"{machine.client_id}:wrong")).status == 401
    answer = send(path, ACT | {"token": "x"}, Authorization=right)
    assert answer.status == 429
    assert answer.body.keys() == {"error", "error_description"}
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert register(machine.row.owner, grant="client-credentials").act().status == 200


def test_checking_a_secret_takes_no_password_hash(machine):
    with quickly(0.75):
        for _ in range(5):
            machine.act()


def test_other_method_is_405_in_json(nobody):
    for path in ENDPOINTS:
        for method in ["GET", "PUT", "PATCH", "DELETE", "PROPFIND"]:
            answer = nobody(method, f"{path}?token=x&grant_type=client_credentials")
            assert answer.status == 405
            assert answer.body["error"] == "invalid_request"
            assert answer.headers["Allow"] == "POST, OPTIONS"
            assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", [*ENDPOINTS, "/oauth/authorize", "/oauth/grants", "/session/login", "/session/logout"])
def test_options_tells_the_methods(nobody, path):
    assert "OPTIONS" in nobody("OPTIONS", path).headers["Allow"]


@pytest.mark.parametrize("path", ENDPOINTS)
def test_hostile_body_is_refused_in_oauths_own_words(db, path):
    for body, headers, status in [
        (b"", {}, 400),
        (b"grant_type=", {}, 400),
        (b"%ZZ=%ZZ&&&=", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"grant_type=password&username=a&password=b", {}, 400),
        (b"grant_type=implicit", {}, 400),
        (b"grant_type=refresh_token&grant_type=refresh_token", {}, 400),
        (b"grant_type=%00", {}, 400),
        (b'{"grant_type": "client_credentials"}', {"content_type": "application/json"}, 415),
        (b"grant_type=x", {"content_type": "text/plain"}, 415),
        (b"grant_type=x", {"content_type": f"{FORM}; charset=utf-16"}, 415),
        (b"grant_type=x", {"content_type": f'{FORM}; charset="UTF-16"'}, 415),
        (b"grant_type=x", {"content_type": f"{FORM}; charset=utf8"}, 400),
        (b"grant_type=x", {"content_type": f'{FORM};charset="UTF-8"'}, 400),
        (b"grant_type=x", {"Content-Encoding": "gzip"}, 415),
        (b"x=" + b"y" * 2_000_000, {}, 413),
        (b"&".join(b"a%d=1" % n for n in range(2000)), {}, 400),
    ]:
        answer = send(path, body, **headers)
        expected = {status, 401} if status == 400 else {status}
        assert answer.status in expected
        assert answer.body["error"] in {"invalid_request", "invalid_client", "unsupported_grant_type"}


def test_what_is_refused_before_django_is_told_in_oauths_own_words(db):
    for path in [*ENDPOINTS, "/.well-known/oauth-authorization-server"]:
        for problem, status, error in [
            (DomainError(ErrorCode.PAYLOAD_TOO_LARGE, "The body is too long."), 413, "invalid_request"),
            (invalid(Detail("X", "The header is too long.")), 400, "invalid_request"),
            (RuntimeError("Nobody expected this."), 500, "server_error"),
        ]:
            environ: dict = {}
            refuse(environ, problem)
            response = new_client().generic("POST", path, headers={"Accept": "application/problem+json"}, **environ)
            assert (response.status_code, response["Content-Type"]) == (status, "application/json")
            told = response.json()
            assert (set(told), told["error"]) == ({"error", "error_description"}, error)
            assert response["Cache-Control"] == "no-store"
            if isinstance(problem, DomainError):
                assert told["error_description"].endswith("is too long.")


def test_unknown_grant_is_unsupported(machine):
    for grant in ("password", "urn:ietf:params:oauth:grant-type:device_code", "x"):
        assert machine.post("/oauth/token", grant_type=grant).body["error"] == "unsupported_grant_type"


def test_credentials_in_the_query_are_refused(machine):
    query = f"client_id={machine.client_id}&client_secret={machine.secret}"
    assert send(f"/oauth/token?{query}", ACT).status in {400, 401}


def test_unregistered_address_of_the_toolkit_is_not_there(nobody):
    for path in ("applications/", "applications/register/", "device-authorization", "authorized_tokens/", "register"):
        for root in ("/oauth/", "/o/", "/"):
            assert nobody.get(root + path).status in {308, 404}
            assert nobody.get((root + path).rstrip("/")).status == 404
    assert Caller().get("/.well-known/openid-configuration").status == 404
