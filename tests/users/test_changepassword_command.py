"""manage.py changepassword EMAIL, by the rules of the API."""

import io
import sys

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts import logins
from config.models import AuditEvent
from tests.accounts.oauth.actors import bearer
from tests.conftest import PASSWORD, with_password
from users.models import User

NEW = "four other words instead"


@pytest.fixture
def run(monkeypatch):
    def changepassword(email, password=NEW + "\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(password))
        out = io.StringIO()
        call_command("changepassword", email, stdout=out)
        return out.getvalue()

    return changepassword


@pytest.fixture
def owner(make_user):
    return make_user(name="Ann Lee", email="Ann@example.com", password=PASSWORD)


def test_password_is_changed_whatever_the_letters_of_the_email(run, owner):
    assert run("ANN@example.com") == "Changed the password of Ann@example.com.\n"
    assert with_password(owner, NEW).get("/api/protected").status == 200
    assert with_password(owner, PASSWORD).get("/api/protected").status == 401


def test_change_is_noted_once_and_ends_logins_and_sessions(run, owner):
    jwt, browser = bearer(str(logins.log_in(owner).access)), Client()
    browser.force_login(owner)
    assert (jwt.get("/api/protected").status, browser.get("/api/protected").status_code) == (200, 200)
    run("ann@example.com")
    assert (jwt.get("/api/protected").status, browser.get("/api/protected").status_code) == (401, 401)
    assert AuditEvent.objects.filter(event="password.changed", user=owner).count() == 1


def test_what_the_api_refuses_is_one_line_and_changes_nothing(run, owner):
    for email, password in [
        ("nobody@example.com", NEW),
        ("a\0b", NEW),
        ("a\udcff", NEW),
        ("ann@example.com", ""),
        ("ann@example.com", "12345678"),
        ("ann@example.com", "Ann@example.com"),
        ("ann@example.com", "p" * 129),
        ("ann@example.com", "nul\0in the middle"),
    ]:
        with pytest.raises(CommandError) as refused:
            run(email, password)
        assert len(str(refused.value).splitlines()) == 1
        assert User.objects.get(pk=owner.pk).password == owner.password
        assert not AuditEvent.objects.exists()
