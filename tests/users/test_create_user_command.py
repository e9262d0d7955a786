"""manage.py create_user EMAIL --name N [--role R]"""

import io
import sys

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import PASSWORD, with_password
from users.models import User


@pytest.fixture
def run(db, monkeypatch):
    def create_user(*arguments, password=PASSWORD + "\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(password))
        out = io.StringIO()
        call_command("create_user", *arguments, stdout=out)
        return out.getvalue()

    return create_user


@pytest.mark.parametrize("role", ["admin", "support", "user"])
def test_user_is_created_and_its_id_printed(run, role):
    printed = run("Ann@example.com", "--name", "Ann Lee", "--role", role)
    row = User.objects.get()
    assert printed == f"{row.pk}\n"
    assert (row.name, row.email, row.role, row.status) == ("Ann Lee", "Ann@example.com", role, "active")
    assert with_password(row).get("/api/protected").status == 200


def test_role_is_user_when_none_is_named(run):
    run("ann@example.com", "--name", "Ann")
    assert User.objects.get().role == "user"


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_end_of_the_line_is_not_the_passwords(run, ending):
    run("ann@example.com", "--name", "Ann", password=f" {PASSWORD} {ending}")
    assert User.objects.get().check_password(f" {PASSWORD} ")


def test_wrong_input_is_one_line_and_creates_nobody(run):
    for arguments, password in [
        (["ann@example", "--name", "Ann"], PASSWORD),
        (["", "--name", "Ann"], PASSWORD),
        (["ann@example.com", "--name", ""], PASSWORD),
        (["ann@example.com", "--name", "n" * 201], PASSWORD),
        (["ann@example.com", "--name", "a\nb"], PASSWORD),
        (["ann@example.com", "--name", "Ann\udcff"], PASSWORD),
        (["ann\udcff@example.com", "--name", "Ann"], PASSWORD),
        (["ann@example.com", "--name", "Ann", "--role", "boss"], PASSWORD),
        (["ann@example.com"], PASSWORD),
        (["--name", "Ann"], PASSWORD),
        (["ann@example.com", "--name", "Ann"], ""),
        (["ann@example.com", "--name", "Ann"], "12345678"),
        (["ann@example.com", "--name", ""], "short"),
        (["ann@example.com", "--name", "Ann"], "p" * 129),
    ]:
        with pytest.raises(CommandError) as refused:
            run(*arguments, password=password)
        assert len(str(refused.value).splitlines()) == 1
        assert not User.objects.exists()


def test_taken_email_is_one_line_and_creates_nobody(run):
    run("ann@example.com", "--name", "Ann")
    with pytest.raises(CommandError) as refused:
        run("ANN@example.com", "--name", "Second")
    assert len(str(refused.value).splitlines()) == 1
    assert User.objects.count() == 1
