"""Keys are changed without ending a login: the new one signs, the earlier ones still verify."""

import jwt
import pytest
from django.conf import settings

from accounts import tokens
from tests.accounts.conftest import log_in, refresh, refused, with_bearer
from tests.conftest import PASSWORD
from users.models import User

OTHER_KEY = "another-key-of-0123456789-characters"


@pytest.fixture
def sign_by(monkeypatch):
    """Has the first of some keys sign, and all verify."""

    def put(*keys):
        monkeypatch.setattr(tokens, "backend", tokens.Backend(*keys))

    return put


def test_login_outlives_a_change_of_the_signing_key(owner, pair, sign_by):
    sign_by(OTHER_KEY, settings.JWT_SIGNING_KEY)
    assert with_bearer(pair["access_token"]).get("/users").status == 200
    renewed = refresh(pair["refresh_token"])
    assert renewed.status == 200
    token = renewed.data["access_token"]
    assert jwt.decode(token, OTHER_KEY, ["HS256"], options={"verify_aud": False})
    assert with_bearer(token).get("/users").status == 200
    sign_by(OTHER_KEY)
    assert with_bearer(token).get("/users").status == 200
    assert refused(with_bearer(pair["access_token"]).get("/users"))


def test_new_key_verifies_before_it_signs(owner, sign_by):
    sign_by(settings.JWT_SIGNING_KEY, OTHER_KEY)
    token = log_in(owner.email).data["access_token"]
    assert jwt.decode(token, settings.JWT_SIGNING_KEY, ["HS256"], options={"verify_aud": False})
    sign_by(OTHER_KEY, settings.JWT_SIGNING_KEY)
    token = log_in(owner.email).data["access_token"]
    sign_by(settings.JWT_SIGNING_KEY, OTHER_KEY)
    assert with_bearer(token).get("/users").status == 200


def test_login_outlives_a_change_of_the_secret_key(owner, pair, settings):
    earlier = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + earlier, [earlier]
    assert with_bearer(pair["access_token"]).get("/users").status == 200
    renewed = refresh(pair["refresh_token"])
    settings.SECRET_KEY_FALLBACKS = []
    assert with_bearer(renewed.data["access_token"]).get("/users").status == 200


def test_login_ends_with_its_secret_key(owner, pair, settings):
    settings.SECRET_KEY = "n" + settings.SECRET_KEY
    assert refused(with_bearer(pair["access_token"]).get("/users"))


def test_password_change_ends_the_logins_of_an_earlier_secret_key(owner, pair, settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" + settings.SECRET_KEY, [settings.SECRET_KEY]
    user = User.objects.get(pk=owner.pk)
    user.set_password("four other words instead")
    user.save()
    assert refused(with_bearer(pair["access_token"]).get("/users"))
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
