"""Access tokens of a login as credentials."""

import base64
import json
import time

import jwt
import pytest
import time_machine
from django.conf import settings

from accounts.signing_keys import parse_signing_key
from tests.accounts.conftest import log_in, refresh, refused
from tests.accounts.oauth.actors import bearer

OTHER_TYPE = {"access": "refresh", "refresh": "access"}


def claims_of(token):
    return jwt.decode(token, options={"verify_signature": False})


def signed(claims, key=None, algorithm="HS256", **headers):
    return jwt.encode(claims, key or settings.JWT_SIGNING_KEY, algorithm, headers=headers or None)


def segment(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_claims_are_those_of_the_service(owner, pair):
    for token, kind, seconds in (
        (pair["access_token"], "access", 15 * 60),
        (pair["refresh_token"], "refresh", 14 * 24 * 3600),
    ):
        claims = claims_of(token)
        assert set(claims) == {"iss", "aud", "sub", "sid", "jti", "iat", "exp", "token_type"}
        assert claims["iss"] == settings.PUBLIC_URL
        assert claims["aud"] == f"{settings.PUBLIC_URL}/api"
        assert claims["sub"] == str(owner.pk)
        assert claims["token_type"] == kind
        assert claims["exp"] - claims["iat"] == seconds
        assert abs(claims["iat"] - time.time()) < 60
        key_id = parse_signing_key(settings.JWT_SIGNING_KEY).key_id
        assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT", "kid": key_id}


def test_token_tells_when_it_ends(pair):
    told = bearer(pair["access_token"]).get("/api/protected").data["credential"]["expires_at"]
    assert told == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(claims_of(pair["access_token"])["exp"]))


FORGERIES = {
    "alg none": lambda claims: f"{segment({'alg': 'none'})}.{segment(claims)}.",
    "alg none with a signature": lambda claims: f"{segment({'alg': 'none'})}.{segment(claims)}.{segment(b'x' * 32)}",
    "alg of another length": lambda claims: signed(claims, algorithm="HS512"),
    "alg of no kind": lambda claims: f"{segment({'alg': 'ES999'})}.{segment(claims)}.{segment(b'x')}",
    "alg that is no text": lambda claims: f"{segment({'alg': ['HS256']})}.{segment(claims)}.{segment(b'x')}",
    "no alg": lambda claims: f"{segment({'typ': 'JWT'})}.{segment(claims)}.{segment(b'x')}",
    "critical header": lambda claims: signed(claims, crit=["x"], x=1),
    "detached payload": lambda claims: f"{segment({'alg': 'HS256', 'b64': False, 'crit': ['b64']})}..{segment(b'x')}",
    "another key": lambda claims: signed(claims, "k" * 64),
    "the key of Django": lambda claims: signed(claims, settings.SECRET_KEY),
    "another issuer": lambda claims: signed(claims | {"iss": "https://evil.example.com"}),
    "another audience": lambda claims: signed(claims | {"aud": "https://evil.example.com"}),
    "expired": lambda claims: signed(claims | {"exp": int(time.time()) - 1}),
    "not yet valid": lambda claims: signed(claims | {"nbf": int(time.time()) + 600}),
    "issued in the future": lambda claims: signed(claims | {"iat": int(time.time()) + 600}),
    "the other type": lambda claims: signed(claims | {"token_type": OTHER_TYPE[claims["token_type"]]}),
    "token of no type": lambda claims: signed(claims | {"token_type": None}),
    "another user": lambda claims: signed(claims | {"sub": "1"}),
    "session that is none": lambda claims: signed(claims | {"sid": "00000000-0000-4000-8000-000000000000"}),
    "session that is no id": lambda claims: signed(claims | {"sid": "\0' OR 1=1"}),
    "session spelt otherwise": lambda claims: signed(claims | {"sid": claims["sid"].upper().replace("-", "")}),
    "session as a number": lambda claims: signed(claims | {"sid": 1}),
    "end of another form": lambda claims: signed(claims | {"exp": str(claims["exp"])}, typ="JWT"),
    "end that is no date": lambda claims: signed(claims | {"exp": 10**30}),
    "end far away": lambda claims: signed(claims | {"exp": 10**17}),
    "end after the last year": lambda claims: signed(claims | {"exp": 10**12}),
    "end beyond all clocks": lambda claims: signed(claims | {"exp": 2**62}),
    "claims that are a list": lambda claims: jwt.PyJWS().encode(b"[]", settings.JWT_SIGNING_KEY, "HS256"),
    "claims that are no JSON": lambda claims: jwt.PyJWS().encode(b"\xff", settings.JWT_SIGNING_KEY, "HS256"),
    **{
        f"no {name}": lambda claims, name=name: signed({k: v for k, v in claims.items() if k != name})
        for name in ("iss", "aud", "sub", "sid", "jti", "iat", "exp", "token_type")
    },
}


def take_access_token(token):
    return bearer(token).get("/api/protected")


@pytest.mark.parametrize(("kind", "take"), [("access_token", take_access_token), ("refresh_token", refresh)])
def test_forged_token_is_refused(pair, kind, take):
    for name, forge in FORGERIES.items():
        answer = take(forge(claims_of(pair[kind])))
        assert refused(answer), (name, answer)
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"], name
    # So each was refused for what it is, and not because the session had ended.
    assert take(pair[kind]).status == 200


def test_pair_of_a_node_whose_clock_is_seconds_ahead_is_taken(owner):
    with time_machine.travel(time.time() + 3):
        pair = log_in(owner.email).data
    assert bearer(pair["access_token"]).get("/api/protected").status == 200
    assert bearer(signed(claims_of(pair["access_token"]) | {"nbf": int(time.time()) + 3})).get("/users").status == 200
    assert refresh(pair["refresh_token"]).status == 200


GARBAGE = ["x", "..", "a.b.c", "a.b", "a.b.c.d", "é.é.é", "x" * 15_000, ("x" * 3000 + ".") * 2 + "x", "\x7f.\x7f.\x7f"]


def test_garbage_is_refused(db):
    for garbage in [*GARBAGE, segment(b"[" * 2900) + ".e30.x", segment(b'{"a":' * 600) + ".e30.x"]:
        assert refused(bearer(garbage).get("/api/protected"))
        answer = refresh(garbage)
        assert refused(answer) or (answer.status, answer.fields) == (400, {"refresh_token"}), answer


def test_altered_token_is_refused(pair):
    head, body, signature = pair["access_token"].split(".")
    last = "A" if signature[0] != "A" else "B"
    for altered in (f"{head}.{body}.{last}{signature[1:]}", f"{head}.{body[:-4]}AAAA.{signature}", f"{head}.{body}.A"):
        assert refused(bearer(altered).get("/users"))


def test_token_is_spelt_in_one_way(pair):
    head, body, signature = pair["access_token"].split(".")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # The last character holds two bits that belong to no byte.
    same_bytes = signature[:-1] + last[last.index(signature[-1]) ^ 1]
    for otherwise in (f"{signature}=", f"{signature}!", f"{signature[:9]}*{signature[9:]}", same_bytes):
        assert refused(bearer(f"{head}.{body}.{otherwise}").get("/users"))
    assert refused(bearer(f"{head}.{body}=.{signature}").get("/users"))
    assert bearer(f"{head}.{body}.{signature}").get("/users").status == 200


def deactivated(owner, admin):
    assert admin.patch(f"/users/{owner.pk}", {"status": "inactive"}).status == 200


def test_refused_refresh_of_a_deactivated_user_does_not_use_the_token_up(owner, pair, admin):
    deactivated(owner, admin)
    assert refused(refresh(pair["refresh_token"]))
    assert admin.patch(f"/users/{owner.pk}", {"status": "active"}).status == 200
    assert refresh(pair["refresh_token"]).status == 200
