"""What a user looks like, and which values its fields take."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from users.models import User

SHOWN = {"id", "name", "email", "role", "status", "created_at", "updated_at"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
ANN = {"name": "Ann Lee", "email": "ann@example.com"}


def test_user_has_exactly_the_fields_of_the_contract(admin, make_user):
    row = make_user(name="Ann Lee", email="Ann.Lee@Example.com", status="inactive")
    answer = admin.get(f"/users/{row.pk}")
    assert answer.status == 200
    assert set(answer.body) == {"success", "data"}
    assert answer.body["success"] is True
    assert set(answer.data) == SHOWN | {"_links"}
    assert {name: answer.data[name] for name in ("id", "name", "email", "role", "status")} == {
        "id": row.pk,
        "name": "Ann Lee",
        "email": "Ann.Lee@Example.com",
        "role": "user",
        "status": "inactive",
    }
    assert type(answer.data["id"]) is int


def test_user_in_a_list_has_the_same_fields_and_no_links(admin, user):
    listed = admin.get("/users?sort=id")
    assert listed.status == 200
    assert [item["id"] for item in listed.data] == [admin.user.pk, user.user.pk]
    assert all(set(item) == SHOWN for item in listed.data)
    single = admin.get(f"/users/{user.user.pk}").data
    del single["_links"]
    assert listed.data[1] == single


def test_times_are_utc_with_z_and_of_now(admin):
    created = admin.post("/users", ANN).data
    for name in ("created_at", "updated_at"):
        assert TIME.fullmatch(created[name]), created[name]
        age = datetime.now(UTC) - datetime.fromisoformat(created[name])
        assert abs(age) < timedelta(minutes=1)


def test_created_user_has_the_defaults_and_is_where_location_says(admin):
    answer = admin.post("/users", ANN)
    assert answer.status == 201
    assert answer.headers["Location"] == f"/users/{answer.data['id']}"
    assert (answer.data["role"], answer.data["status"]) == ("user", "active")
    read = admin.get(answer.headers["Location"])
    assert read.status == 200
    assert read.data == answer.data


def test_created_user_without_password_has_none_that_works(admin):
    created = admin.post("/users", ANN).data
    row = User.objects.get(pk=created["id"])
    assert not row.has_usable_password()


def test_read_only_fields_in_a_body_are_ignored(admin):
    sent = {**ANN, "id": 1, "created_at": "2001-01-01T00:00:00Z", "updated_at": "2001-01-01T00:00:00Z"}
    created = admin.post("/users", sent)
    assert created.status == 201
    assert created.data["id"] != 1
    assert not created.data["created_at"].startswith("2001")
    assert not created.data["updated_at"].startswith("2001")


@pytest.mark.parametrize(
    "name", [" Ann ", "A", "é" * 200, "\N{GRINNING FACE}" * 200, "Ann\u2003Lee", "<b>Ann</b>", "آن لی"]
)
def test_name_is_kept_as_sent(admin, name):
    created = admin.post("/users", {**ANN, "name": name})
    assert created.status == 201
    assert admin.get(f"/users/{created.data['id']}").data["name"] == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "\u3000\u2003",
        "n" * 201,
        "\N{GRINNING FACE}" * 201,
        "a\0b",
        "a\ud800b",
        "a\nb",
        "a\tb",
        "a\x1bb",
        "a\x7fb",
        "a\x85b",
        None,
        5,
        1.5,
        True,
        [],
        {},
        ["Ann"],
    ],
)
def test_name_that_is_no_name_is_refused(admin, user, name):
    refused = admin.post("/users", {**ANN, "name": name})
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"name"})
    patched = user.patch(f"/users/{user.user.pk}", {"name": name})
    assert (patched.status, patched.code, patched.fields) == (400, "VALIDATION_ERROR", {"name"})
    assert user.get(f"/users/{user.user.pk}").data["name"] == "Uma User"
    assert not User.objects.filter(email="ann@example.com").exists()


@pytest.mark.parametrize("email", ["a@b.co", "Ann.Lee+tag@Example.COM", f"{'a' * 60}@{'b.' * 94}example"[:254]])
def test_email_is_stored_as_given(admin, email):
    created = admin.post("/users", {**ANN, "email": email})
    assert created.status == 201, created
    assert admin.get(f"/users/{created.data['id']}").data["email"] == email


@pytest.mark.parametrize(
    "email",
    [
        "",
        " ",
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        " ann@example.com",
        "ann@example.com ",
        "a b@example.com",
        "ann@example.com\0",
        "ann\ud800@example.com",
        "ann@example.com\n",
        "ann@exa mple.com",
        f"{'a' * 60}@{'b.' * 94}example.com",
        None,
        5,
        True,
        ["ann@example.com"],
    ],
)
def test_email_that_is_none_is_refused(admin, email):
    refused = admin.post("/users", {**ANN, "email": email})
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"email"})
    assert not User.objects.filter(name="Ann Lee").exists()


@pytest.mark.parametrize("field", ["role", "status"])
@pytest.mark.parametrize("value", ["", "boss", "Active", "USER", " user", None, 1, True, [], {}])
def test_unknown_role_or_status_is_refused(admin, field, value):
    refused = admin.post("/users", {**ANN, field: value})
    assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {field})
    assert not User.objects.filter(name="Ann Lee").exists()


def test_every_problem_is_told_at_once(admin):
    refused = admin.post("/users", {"name": "", "role": "boss", "status": 7, "password": None})
    assert refused.status == 400
    assert refused.fields == {"name", "email", "role", "status", "password"}
    assert all(set(detail) == {"field", "message"} and detail["message"] for detail in refused.error["details"])


def test_surrogate_pair_in_json_is_one_character(admin):
    raw = rb'{"name": "\ud83d\ude00", "email": "ann@example.com"}'
    created = admin("POST", "/users", raw=raw)
    assert created.status == 201
    assert created.data["name"] == "\N{GRINNING FACE}"


@pytest.mark.parametrize("row_id", ["0", "-1", "abc", "1.0", "01", "9223372036854775808", "9" * 30, "٣", "%00"])
def test_id_that_is_no_positive_64_bit_integer_is_not_found(admin, row_id):
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = admin(method, f"/users/{row_id}", ANN)
        assert (answer.status, answer.code) == (404, "NOT_FOUND"), method
    assert admin.get(f"/users/{row_id}/posts").status == 404
