"""manage.py create_api_key EMAIL [--scopes "users:read …"] [--days N]"""

import io
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from accounts.models import APIKey
from config.api.principal import AUDIT_SCOPE, SCOPES
from tests.conftest import Caller
from tests.plugins import secrecy


@pytest.fixture
def run(make_user, told):
    make_user(email="Ann@example.com")

    def create_api_key(*arguments):
        out, errors = io.StringIO(), io.StringIO()
        call_command("create_api_key", *arguments, stdout=out, stderr=errors)
        secrecy.commit()
        assert (errors.getvalue(), told()) == ("", [])
        return out.getvalue()

    return create_api_key


def protected(printed):
    return Caller(headers={"X-API-Key": printed.removesuffix("\n")}).get("/api/protected")


@pytest.mark.parametrize("email", ["Ann@example.com", "ann@EXAMPLE.com"])
def test_key_alone_is_printed_and_works_with_all_scopes_for_ever(run, email):
    printed = run(email)
    assert printed.endswith("\n")
    assert len(printed.split()) == 1
    answer = protected(printed)
    assert answer.status == 200
    assert answer.data["user"]["email"] == "Ann@example.com"
    assert answer.data["credential"]["expires_at"] is None
    assert sorted(answer.data["scopes"]) == sorted({*SCOPES} - {AUDIT_SCOPE})


def test_scopes_of_the_key_are_those_named(run):
    answer = protected(run("ann@example.com", "--scopes", "users:read orders:write users:read"))
    assert sorted(answer.data["scopes"]) == ["orders:write", "users:read"]


@pytest.mark.parametrize("days", [1, 30])
def test_key_ends_after_the_days_named(run, days):
    end = protected(run("ann@example.com", "--days", str(days))).data["credential"]["expires_at"]
    left = datetime.fromisoformat(end) - datetime.now(UTC)
    assert timedelta(days=days) - timedelta(minutes=1) < left <= timedelta(days=days)


def test_wrong_input_is_one_line_and_makes_no_key(run):
    for arguments in [
        [],
        ["nobody@example.com"],
        [""],
        ["ann\udcff@example.com"],
        ["ann@example.com", "--scopes", ""],
        ["ann@example.com", "--scopes", " "],
        ["ann@example.com", "--scopes", "users"],
        ["ann@example.com", "--scopes", "users:read,orders:read"],
        ["ann@example.com", "--scopes", "users:read admin:write"],
        ["ann@example.com", "--days", "0"],
        ["ann@example.com", "--days", "-1"],
        ["ann@example.com", "--days", "1.5"],
        ["ann@example.com", "--days", "x"],
        ["ann@example.com", "--days", ""],
        ["ann@example.com", "--days", "9" * 30],
    ]:
        with pytest.raises(CommandError) as refused:
            run(*arguments)
        assert len(str(refused.value).splitlines()) == 1
        assert not APIKey.objects.exists()


def test_key_for_a_removed_user_is_refused(run, admin):
    row = admin.get("/users?email=ann@example.com").data[0]
    assert admin.delete(f"/users/{row['id']}").status == 204
    with pytest.raises(CommandError):
        run("ann@example.com")
    with pytest.raises(CommandError):
        run("")
