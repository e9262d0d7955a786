"""POST /api/login: email and password for a pair of tokens."""

import pytest

from accounts.models import LoginSession
from tests.accounts.conftest import WRONG, log_in
from tests.conftest import PASSWORD
from users.models import User


@pytest.mark.parametrize("prefix", ["/api", "/api/v1"])
def test_email_and_password_give_a_pair_of_tokens(owner, nobody, prefix):
    answer = nobody.post(f"{prefix}/login", {"email": owner.email, "password": PASSWORD})
    assert answer.status == 200
    assert set(answer.body) == {"success", "data"}
    assert set(answer.data) == {"access_token", "refresh_token", "token_type", "expires_in"}
    assert answer.data["access_token"] != answer.data["refresh_token"]
    assert (answer.data["token_type"], answer.data["expires_in"]) == ("Bearer", 900)
    assert answer.headers["Cache-Control"] == "no-store"


def test_refusals_look_the_same_whatever_the_reason(owner, make_user, admin):
    make_user(email="off@example.com", password=PASSWORD, status="inactive")
    make_user(email="none@example.com")
    gone = make_user(email="gone@example.com", password=PASSWORD)
    assert admin.delete(f"/users/{gone.pk}").status == 204
    tries = [(owner.email, WRONG), ("nobody@example.com", PASSWORD), ("no email", PASSWORD)]
    tries += [(f"{who}@example.com", PASSWORD) for who in ("off", "none", "gone")]
    answers = [log_in(email, password) for email, password in tries]
    assert {(answer.status, answer.code) for answer in answers} == {(401, "INVALID_CREDENTIALS")}
    assert {answer.response.content for answer in answers} == {answers[0].response.content}
    assert all(answer.headers["WWW-Authenticate"] for answer in answers)
    assert all(answer.headers["Cache-Control"] == "no-store" for answer in answers)
    assert not LoginSession.objects.exists()


def test_body_that_is_not_one_names_every_problem(nobody):
    for body, fields in [
        ({}, {"email", "password"}),
        ({"email": "a@example.com"}, {"password"}),
        ({"email": 5, "password": None}, {"email", "password"}),
        ({"email": ["a@example.com"], "password": True}, {"email", "password"}),
        ({"email": "", "password": " "}, {"email", "password"}),
        ({"email": "x\0@example.com", "password": "\ud800"}, {"email", "password"}),
        ({"email": "x" * 255, "password": "x" * 129}, {"email", "password"}),
        ({"email": 10**50, "password": {"a": 1}}, {"email", "password"}),
    ]:
        answer = nobody.post("/api/login", body)
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", fields)


def test_only_digests_of_the_tokens_are_stored(owner, pair):
    row = LoginSession.objects.values().get()
    stored = str({name: bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()})
    assert not any(part in stored for token in pair.values() for part in str(token).split(".") if len(part) > 30)
    assert User.objects.get(pk=owner.pk).password not in stored
