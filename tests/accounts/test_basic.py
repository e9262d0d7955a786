"""Basic as a credential."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.hashers import check_password, make_password
from django.core.cache import cache

from tests.conftest import PASSWORD, Caller, with_bearer_of, with_password
from users.models import User


def basic(pair):
    encoded = b64encode(pair if isinstance(pair, bytes) else pair.encode()).decode()
    return Caller(headers={"Authorization": f"Basic {encoded}"})


@pytest.mark.parametrize("build", [with_password, with_bearer_of], ids=["Basic", "Bearer"])
@pytest.mark.parametrize("spell", [str.title, str.lower, str.upper])
def test_scheme_is_taken_without_regard_to_case(owner, build, spell):
    scheme, credential = build(owner).headers["Authorization"].split(" ")
    assert Caller(headers={"Authorization": f"{spell(scheme)} {credential}"}).get("/users").status == 200


@pytest.mark.parametrize("password", ["with:colons:in it", "pässwörd of ünicode", " outer blanks stay "])
def test_password_is_everything_after_the_first_colon(make_user, password):
    row = make_user(password=password)
    assert basic(f"{row.email}:{password}").get("/users").status == 200
    for near in (password[:-1], password[1:], password + " ", password.partition(":")[0][:-1]):
        assert basic(f"{row.email}:{near}").get("/users").status == 401, near


@pytest.mark.parametrize(
    "pair",
    [
        "",
        ":",
        "Ann@example.com",
        "Ann@example.com:",
        f":{PASSWORD}",
        f"Ann@example.com:{PASSWORD}x",
        f"Ann@example.com:{PASSWORD.upper()}",
        f"Ann@example.com: {PASSWORD}",
        f"nobody@example.com:{PASSWORD}",
        f"Ann@example.com\0:{PASSWORD}",
        f"Ann@example.com:{PASSWORD}\0",
        f"%@example.com:{PASSWORD}",
        b"\xff\xfe:\xff",
        "x" * 3000 + ":" + "y" * 3000,
    ],
)
def test_bad_pair_is_refused_with_a_challenge(owner, pair):
    answer = basic(pair).get("/users")
    assert (answer.status, answer.code) == (401, "INVALID_CREDENTIALS")
    assert "Basic" in answer.headers["WWW-Authenticate"]


def test_refusals_look_the_same_whatever_the_reason(owner, make_user):
    make_user(email="off@example.com", password=PASSWORD, status="inactive")
    make_user(email="keyless@example.com")
    pairs = ["Ann@example.com:wrong", "nobody@example.com:x", f"off@example.com:{PASSWORD}", "keyless@example.com:x"]
    answers = [basic(pair).get("/users") for pair in pairs]
    assert {answer.status for answer in answers} == {401}
    assert {answer.response.content for answer in answers} == {answers[0].response.content}


def test_user_without_a_password_has_no_pair_that_works(make_user):
    row = make_user()
    for password in ("", "!", row.password, "None"):
        assert basic(f"{row.email}:{password}").get("/users").code == "INVALID_CREDENTIALS"


@pytest.fixture
def hashed(monkeypatch):
    """The passwords that were compared with a hash, on a fresh memory of good ones."""
    seen = []

    def check(password, stored):
        seen.append(password)
        return check_password(password, stored)

    monkeypatch.setattr("accounts.passwords.check_password", check)
    cache.clear()
    return seen


def test_good_password_is_hashed_once_a_minute(owner, hashed):
    caller = with_password(owner)
    for second, times in ((0, 1), (59, 1), (61, 2), (120, 2)):
        with time_machine.travel(datetime(2026, 12, 1, 9, 30, tzinfo=UTC) + timedelta(seconds=second), tick=False):
            assert caller.get("/users").status == 200
        assert len(hashed) == times, second


def test_wrong_password_is_hashed_each_time(owner, hashed):
    assert with_password(owner).get("/users").status == 200
    for times in (2, 3):
        assert basic("Ann@example.com:wrong").get("/users").status == 401
        assert len(hashed) == times


def test_remembered_password_ends_with_a_change_by_another_process(owner, hashed):
    caller = with_password(owner)
    assert caller.get("/users").status == 200
    User.objects.filter(pk=owner.pk).update(password=make_password("four other words instead"))
    assert caller.get("/users").status == 401


def test_status_is_never_remembered(owner, hashed):
    caller = with_password(owner)
    assert caller.get("/users").status == 200
    User.objects.filter(pk=owner.pk).update(status="inactive")
    for times in (2, 3):
        assert caller.get("/users").status == 401
        assert len(hashed) == times, "a quick refusal would tell that the password is right"
    User.objects.filter(pk=owner.pk).update(status="active")
    assert caller.get("/users").status == 200
    assert len(hashed) == 3


def test_password_is_not_remembered_for_another_user(owner, make_user, hashed):
    assert with_password(owner).get("/users").status == 200
    other = make_user(password="four other words instead")
    assert basic(f"{other.email}:{PASSWORD}").get("/users").status == 401
