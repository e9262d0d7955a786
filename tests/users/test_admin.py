"""The admin's forms obey the rules of the API; they are posted as a browser posts them."""

from __future__ import annotations

from functools import partial

import pytest
from django.test import Client

import users.admin
from tests.conftest import PASSWORD, signed_in
from users import services
from users.models import User

NEW = "another long phrase"


def build_form(user: User, **changes: str) -> dict[str, str]:
    return {"name": user.name, "email": user.email, "role": user.role, "status": user.status, **changes}


def test_change_form_saves_a_user(pages, make_user):
    user = make_user(name="  Before  ")
    answer = pages.post(f"/admin/users/user/{user.pk}/change/", build_form(user, role="support"))
    assert answer.status_code == 302
    user.refresh_from_db()
    assert (user.role, user.name) == ("support", "  Before  ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "not an email"),
        ("email", "TAKEN@example.com"),
        ("name", "a\x07b"),
        ("name", "   "),
        ("name", "\u3164"),
        ("name", ""),
    ],
)
@pytest.mark.parametrize("action", ["add", "change"])
def test_value_that_the_api_refuses_is_a_field_error(pages, make_user, action, field, value):
    make_user(email="taken@example.com")
    user = make_user(name="N")
    passwords = {"usable_password": "true", "password1": NEW, "password2": NEW}
    path, form = {
        "add": ("/admin/users/user/add/", {**build_form(user, email="new@example.com"), **passwords}),
        "change": (f"/admin/users/user/{user.pk}/change/", build_form(user)),
    }[action]
    count = User.objects.count()
    answer = pages.post(path, {**form, field: value})
    assert answer.status_code == 200
    assert field in answer.context["adminform"].form.errors
    assert User.objects.count() == count


def test_new_user_has_the_password_of_the_form(pages):
    form = {"name": "N", "email": "n@example.com", "role": "user", "status": "active"}
    passwords = {"usable_password": "true", "password1": NEW, "password2": NEW}
    assert pages.post("/admin/users/user/add/", {**form, **passwords}).status_code == 302
    assert User.objects.with_email("n@example.com").get().check_password(NEW)


@pytest.mark.parametrize("path", ["/admin/users/user/{}/password/", "/admin/password_change/"])
def test_password_form_does_not_restore_a_user_removed_meanwhile(make_user, chief, path, monkeypatch):
    user = make_user("admin", password=PASSWORD)
    client = signed_in(user if "change" in path else chief)
    change_password = users.admin._change_password

    def after_a_removal(stale: User, password: str) -> User:
        services.remove(User.objects.get(pk=user.pk))
        return change_password(stale, password)

    monkeypatch.setattr(users.admin, "_change_password", after_a_removal)
    form = {"password1": NEW, "password2": NEW, "old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    answer = client.post(path.format(user.pk), {**form, "usable_password": "true"})
    assert answer.status_code in {302, 404}
    tombstone = User._base_manager.get(pk=user.pk)
    assert (tombstone.name, tombstone.email, tombstone.password) == ("", "", "")
    assert tombstone.removed_at is not None


def test_forged_query_string_is_no_server_error(pages):
    for address in [
        "users/user/?email=%00",
        "users/user/?role__exact=%00",
        "users/user/?name__regex=%28",
        "users/user/?created_at__year=99999",
        "users/user/?q=%00",
        "users/user/?o=99.x",
        "users/user/?p=99999999999999999999",
        "accounts/apikey/?digest=00",
        "accounts/apikey/?scopes=%7B",
        "payments/payment/?amount__gt=1e999999999",
        "posts/post/?title=%00",
    ]:
        assert pages.get(f"/admin/{address}").status_code in {200, 302, 400}


@pytest.mark.parametrize("selected", ["x", "\0", "-1", "9" * 30])
def test_selection_of_missing_rows_is_no_server_error(pages, selected):
    form = {"action": "delete_selected", "_selected_action": selected, "post": "yes"}
    assert pages.post("/admin/users/user/", form).status_code in {200, 302}


def test_unreadable_form_is_400(db):
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies["csrftoken"] = "a" * 32
    for content_type in ("multipart/form-data", "application/x-www-form-urlencoded; charset=utf-16"):
        answer = client.generic("POST", "/admin/login/", b"x", content_type)
        assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/json"), content_type


def test_simultaneous_additions_of_one_email_add_one(at_once, make_user):
    clients = [signed_in(make_user("admin")) for _ in range(4)]
    form = {"name": "N", "email": "same@example.com", "role": "user", "status": "active", "usable_password": "false"}
    answers = at_once(partial(client.post, "/admin/users/user/add/", form) for client in clients)
    assert {answer.status_code for answer in answers} <= {200, 302}
    assert User.objects.with_email("same@example.com").count() == 1
