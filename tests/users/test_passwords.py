"""Setting and changing passwords."""

import pytest
from django.test import Client

from tests.conftest import COST_OF_A_HASH, PASSWORD, with_key, with_password
from users.models import User

NEW = "four other words instead"
ANN = {"name": "Ann Lee", "email": "ann.lee@example.com"}


@pytest.fixture
def person(make_user):
    return make_user(password=PASSWORD)


@pytest.fixture
def administrator(make_user):
    return make_user("admin", password=PASSWORD)


def logs_in(row, password):
    return with_password(User.objects.get(pk=row.pk), password).get("/api/protected").status == 200


def test_password_set_at_creation_works_and_is_never_shown(admin):
    created = admin.post("/users", {**ANN, "password": PASSWORD})
    assert created.status == 201
    assert "password" not in created.data
    assert PASSWORD.encode() not in created.response.content
    row = User.objects.get(pk=created.data["id"])
    assert row.password.startswith("argon2$argon2id$")
    assert COST_OF_A_HASH == (2, 19 * 1024)
    assert logs_in(row, PASSWORD)
    assert not logs_in(row, NEW)


@pytest.mark.parametrize(
    "password",
    [
        "short1!",
        "password123",
        "8352917460352",
        "ann.lee@example.com",
        "example.com1",
        "",
        " " * 12,
        "x\0" * 8,
        "four\nplain words here",
        "é" * 129,
        None,
        12345678901,
        True,
        ["four plain words here"],
    ],
)
def test_password_that_is_none_or_weak_is_refused(admin, administrator, person, password):
    created = admin.post("/users", {**ANN, "password": password})
    assert (created.status, created.code, created.fields) == (400, "VALIDATION_ERROR", {"password"})
    assert not User.objects.filter(email=ANN["email"]).exists()
    body = {**ANN, "password": password}
    changed = with_password(administrator).patch(f"/users/{person.pk}", body)
    assert (changed.status, changed.code, changed.fields) == (400, "VALIDATION_ERROR", {"password"})
    assert User.objects.get(pk=person.pk).name == person.name
    assert logs_in(person, PASSWORD)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("role", ["user", "support", "admin"])
def test_own_password_is_changed_with_the_current_one(make_user, role, method):
    row = make_user(role, password=PASSWORD)
    make_user("admin")
    key = with_key(row)
    body = {"name": row.name, "email": row.email, "password": NEW, "current_password": PASSWORD}
    if role == "admin":
        body["role"] = "admin"
    answer = with_password(row)(method, f"/users/{row.pk}", body)
    assert answer.status == 200, answer
    assert {"password", "current_password"}.isdisjoint(answer.data)
    assert not logs_in(row, PASSWORD)
    assert logs_in(row, NEW)
    assert key.get("/api/protected").status == 200


@pytest.mark.parametrize("role", ["user", "support", "admin"])
@pytest.mark.parametrize("current", [{}, {"current_password": NEW}, {"current_password": ""}])
def test_own_password_without_the_current_one_is_refused(make_user, role, current):
    row = make_user(role, password=PASSWORD)
    answer = with_password(row).patch(f"/users/{row.pk}", {"name": "New", "password": NEW, **current})
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"current_password"})
    assert User.objects.get(pk=row.pk).name == row.name
    assert logs_in(row, PASSWORD)


@pytest.mark.parametrize("current", [None, 5, True, [PASSWORD], "\ud800", "x\0y", "x" * 10_000])
def test_current_password_that_is_no_text_is_refused(person, current):
    answer = with_password(person).patch(f"/users/{person.pk}", {"password": NEW, "current_password": current})
    assert (answer.status, answer.fields) == (400, {"current_password"})
    assert logs_in(person, PASSWORD)


def test_current_password_goes_beside_a_new_one_only(person):
    answer = with_password(person).patch(f"/users/{person.pk}", {"name": "New", "current_password": PASSWORD})
    assert (answer.status, answer.fields) == (400, {"current_password"})
    assert User.objects.get(pk=person.pk).name == person.name


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_administrator_changes_anothers_password_without_the_current_one(administrator, person, method):
    body = {"name": person.name, "email": person.email, "password": NEW}
    assert with_password(administrator)(method, f"/users/{person.pk}", body).status == 200
    assert logs_in(person, NEW)
    assert not logs_in(person, PASSWORD)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_api_key_that_sends_a_password_is_refused_before_it_is_looked_at(administrator, person, method):
    for password in ["weak", "", None, 5, "x" * 129, ["a"], {}, "password"]:
        for caller in (administrator, person):
            answer = with_key(caller)(method, f"/users/{person.pk}", {"name": "", "password": password})
            assert (answer.status, answer.code, answer.fields) == (403, "FORBIDDEN", {"password"})


@pytest.mark.parametrize("new", [{"name": "Wolfeschlegel"}, {"email": "wolfeschlegel@example.com"}])
def test_password_like_the_new_name_or_email_is_refused(administrator, person, new):
    caller = with_password(administrator)
    refused = caller.patch(f"/users/{person.pk}", {**new, "password": "wolfeschlegel1"})
    assert refused.status == 400
    assert refused.fields == {"password"}
    assert logs_in(person, PASSWORD)


def test_own_password_is_not_changed_in_the_admin_without_the_current_one(administrator):
    client = Client()
    client.force_login(administrator)
    new = {"password1": NEW, "password2": NEW}
    for path in (f"/admin/users/user/{administrator.pk}/password/", f"/admin/users/user/0{administrator.pk}/password/"):
        client.post(path, new)
        assert logs_in(administrator, PASSWORD)
    wrong = {"old_password": NEW, "new_password1": NEW, "new_password2": NEW}
    assert client.post("/admin/password_change/", wrong).status_code == 200
    assert logs_in(administrator, PASSWORD)
    assert client.post("/admin/password_change/", wrong | {"old_password": PASSWORD}).status_code == 302
    assert logs_in(administrator, NEW)
    assert client.get("/admin/").status_code == 200
