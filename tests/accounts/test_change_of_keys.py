"""Keys are changed without ending a login: the new one signs, the earlier ones still verify."""

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from django.conf import settings

from accounts import tokens
from accounts.signing_keys import parse_signing_key
from tests.accounts.conftest import log_in, refresh, refused
from tests.accounts.oauth.actors import bearer
from tests.conftest import PASSWORD, Caller
from users.models import User

OTHER_SECRET = "another-key-of-0123456789-characters"
KEY_SET = "/.well-known/jwks.json"


def build_pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()).decode()


PRIVATE = Ed25519PrivateKey.generate()
PEM = build_pem(PRIVATE)
PUBLIC = PRIVATE.public_key()


@pytest.fixture
def sign_by(monkeypatch):
    """Has the first of some keys sign, and all verify."""

    def put(*keys):
        monkeypatch.setattr(tokens, "backend", tokens.Backend(*keys))

    return put


def get_header(token):
    return jwt.get_unverified_header(token)


@pytest.mark.parametrize("new", [OTHER_SECRET, PEM], ids=["secret", "Ed25519"])
def test_login_outlives_a_change_of_the_signing_key(owner, pair, sign_by, new):
    sign_by(new, settings.JWT_SIGNING_KEY)
    assert bearer(pair["access_token"]).get("/users").status == 200
    renewed = refresh(pair["refresh_token"])
    assert renewed.status == 200
    token = renewed.data["access_token"]
    key = parse_signing_key(new)
    assert (get_header(token)["kid"], get_header(token)["alg"]) == (key.key_id, key.algorithm_name)
    assert bearer(token).get("/users").status == 200
    sign_by(new)
    assert bearer(token).get("/users").status == 200
    assert refused(bearer(pair["access_token"]).get("/users"))


def test_new_key_verifies_before_it_signs(pair, sign_by):
    sign_by(settings.JWT_SIGNING_KEY, PEM)
    assert get_header(log_in("ann@example.com").data["access_token"])["alg"] == "HS256"
    sign_by(PEM, settings.JWT_SIGNING_KEY)
    token = log_in("ann@example.com").data["access_token"]
    sign_by(settings.JWT_SIGNING_KEY, PEM)
    assert bearer(token).get("/users").status == 200


def test_token_without_a_key_id_is_good(pair, sign_by):
    claims = jwt.decode(pair["access_token"], options={"verify_signature": False})
    token = jwt.encode(claims, settings.JWT_SIGNING_KEY, "HS256")
    sign_by(OTHER_SECRET, settings.JWT_SIGNING_KEY)
    assert bearer(token).get("/users").status == 200
    sign_by(OTHER_SECRET, PEM)
    assert refused(bearer(token).get("/users"))


@pytest.mark.parametrize("name_key", [True, False])
def test_public_key_is_no_secret(pair, sign_by, name_key):
    """The token of whoever takes the published key for the secret of HMAC is refused."""
    sign_by(PEM)
    (published,) = Caller().get(KEY_SET).body["keys"]
    claims = jwt.decode(pair["access_token"], options={"verify_signature": False})
    headers = {"kid": published["kid"]} if name_key else None
    assert refused(bearer(jwt.encode(claims, published["x"], "HS256", headers=headers)).get("/users"))


def test_others_verify_tokens_by_the_key_set(owner, sign_by):
    sign_by(PEM, settings.JWT_SIGNING_KEY)
    token = log_in(owner.email).data["access_token"]
    answer = Caller().get(KEY_SET)
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    key = jwt.PyJWKSet.from_dict(answer.body)[get_header(token)["kid"]]
    claims = jwt.decode(token, key, ["EdDSA"], audience=f"{settings.PUBLIC_URL}/api", issuer=settings.PUBLIC_URL)
    assert claims["sub"] == str(owner.pk)


def test_key_set_holds_no_secret(db):
    assert Caller().get(KEY_SET).body == {"keys": []}


def test_key_set_holds_public_members_alone(db, sign_by):
    sign_by(PEM, OTHER_SECRET)
    (key,) = Caller().get(KEY_SET).body["keys"]
    assert key.keys() == {"kty", "crv", "x", "kid", "alg", "use"}


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\nnone\n-----END PRIVATE KEY-----",
        build_pem(generate_private_key(SECP256R1())),
        build_pem(Ed448PrivateKey.generate()),
        build_pem(PRIVATE, BestAvailableEncryption(b"word")),
        PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        PUBLIC.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(),
    ],
    ids=["unreadable", "P-256", "Ed448", "encrypted", "public", "SSH"],
)
def test_key_of_another_kind_is_refused(text):
    with pytest.raises(ValueError, match="unencrypted Ed25519 private key"):
        parse_signing_key(text)


def test_login_outlives_a_change_of_the_secret_key(owner, pair, settings):
    earlier = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + earlier, [earlier]
    assert bearer(pair["access_token"]).get("/users").status == 200
    renewed = refresh(pair["refresh_token"])
    settings.SECRET_KEY_FALLBACKS = []
    assert bearer(renewed.data["access_token"]).get("/users").status == 200


def test_login_ends_with_its_secret_key(owner, pair, settings):
    settings.SECRET_KEY = "n" + settings.SECRET_KEY
    assert refused(bearer(pair["access_token"]).get("/users"))


def test_password_change_ends_the_logins_of_an_earlier_secret_key(owner, pair, settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + settings.SECRET_KEY, [settings.SECRET_KEY]
    user = User.objects.get(pk=owner.pk)
    user.set_password("four other words instead")
    user.save()
    assert refused(bearer(pair["access_token"]).get("/users"))
    assert refused(refresh(pair["refresh_token"]))


def test_cursor_outlives_a_change_of_the_secret_key(admin, make_user, settings):
    for number in range(3):
        make_user(name=f"User {number}", email=f"user{number}@example.com", password=PASSWORD)
    cursor = admin.get("/users?cursor=&limit=1").body["meta"]["nextCursor"]
    earlier = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + earlier, [earlier]
    assert admin.get(f"/users?cursor={cursor}&limit=1").status == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert admin.get(f"/users?cursor={cursor}&limit=1").code == "INVALID_CURSOR"


def test_retry_is_recognised_after_a_change_of_the_secret_key(admin, settings):
    body, headers = {"amount": 12.5}, {"Idempotency-Key": "changed"}
    first = admin.post("/payments", body, **headers)
    earlier = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + earlier, [earlier]
    again = admin.post("/payments", body, **headers)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert admin.post("/payments", {"amount": 13}, **headers).code == "IDEMPOTENCY_KEY_REUSED"
    settings.SECRET_KEY_FALLBACKS = []
    assert admin.post("/payments", body, **headers).code == "IDEMPOTENCY_KEY_REUSED"
