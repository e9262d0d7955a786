"""PUT replaces a user, PATCH merges into it."""

import pytest

from tests.conftest import PASSWORD, with_bearer_of, with_password
from users.models import User

MERGE = "application/merge-patch+json"


@pytest.fixture
def sue(make_user):
    return make_user("support", name="Sue", email="sue@example.com", status="inactive", password=PASSWORD)


def read(caller, row):
    data = caller.get(f"/users/{row.pk}").data
    return {name: data[name] for name in ("name", "email", "role", "status")}


def test_put_returns_omitted_optional_fields_to_their_defaults(admin, sue):
    answer = admin.put(f"/users/{sue.pk}", {"name": "Susan", "email": "susan@example.com"})
    assert answer.status == 200
    assert read(admin, sue) == {
        "name": "Susan",
        "email": "susan@example.com",
        "role": "user",
        "status": "active",
    }
    assert answer.data == admin.get(f"/users/{sue.pk}").data


def test_put_leaves_the_password_alone(admin, sue):
    assert admin.put(f"/users/{sue.pk}", {"name": "Susan", "email": "sue@example.com"}).status == 200
    assert with_password(User.objects.get(pk=sue.pk)).get("/api/protected").status == 200


@pytest.mark.parametrize("role", ["user", "support"])
def test_put_keeps_fields_that_the_caller_may_not_change_and_leaves_out(make_user, role):
    row = make_user(role, password=PASSWORD)
    caller = with_password(row)
    answer = caller.put(f"/users/{row.pk}", {"name": "New", "email": row.email})
    assert answer.status == 200
    assert (answer.data["name"], answer.data["role"], answer.data["status"]) == ("New", role, "active")
    with_same = caller.put(f"/users/{row.pk}", {"name": "Newer", "email": row.email, "role": role, "status": "active"})
    assert (with_same.status, with_same.data["name"]) == (200, "Newer")


@pytest.mark.parametrize("field", ["name", "email", "role", "status", "password"])
def test_put_with_null_is_refused(admin, sue, field):
    before = read(admin, sue)
    administrator = with_bearer_of(admin.user)
    answer = administrator.put(f"/users/{sue.pk}", {"name": "Susan", "email": "susan@example.com", field: None})
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field})
    assert read(admin, sue) == before


def test_patch_changes_what_it_names_and_nothing_else(admin, sue):
    answer = admin.patch(f"/users/{sue.pk}", {"name": "Susan"})
    assert answer.status == 200
    assert read(admin, sue) == {
        "name": "Susan",
        "email": "sue@example.com",
        "role": "support",
        "status": "inactive",
    }


@pytest.mark.parametrize(("field", "default"), [("role", "user"), ("status", "active")])
def test_patch_of_an_optional_field_with_null_returns_it_to_its_default(admin, sue, field, default):
    before = read(admin, sue)
    assert before[field] != default
    answer = admin.patch(f"/users/{sue.pk}", {field: None}, content_type=MERGE)
    assert answer.status == 200
    assert read(admin, sue) == {**before, field: default}


@pytest.mark.parametrize("field", ["name", "email"])
def test_patch_of_a_required_field_with_null_is_refused(admin, sue, field):
    before = read(admin, sue)
    answer = admin.patch(f"/users/{sue.pk}", {field: None, "status": "active"})
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field})
    assert read(admin, sue) == before


def test_patch_of_the_role_with_null_is_a_change_that_needs_the_right(support, user):
    refused = support.patch(f"/users/{support.user.pk}", {"role": None})
    assert (refused.status, refused.code, refused.fields) == (403, "FORBIDDEN", {"role"})
    assert support.get(f"/users/{support.user.pk}").data["role"] == "support"
    assert user.patch(f"/users/{user.user.pk}", {"role": None, "status": None}).status == 200


def test_put_of_a_part_is_refused(admin, sue):
    before = read(admin, sue)
    body = {"name": "Susan", "email": "susan@example.com"}
    answer = admin.put(f"/users/{sue.pk}", body, content_range="bytes 0-9/100")
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"Content-Range"})
    assert read(admin, sue) == before


@pytest.mark.parametrize(
    "patch",
    [{"name": {"first": "Sue"}}, {"name": ["Sue"]}, {"role": {"": None}}, {"status": [None]}],
)
def test_patch_that_merges_into_a_plain_value_is_refused(admin, sue, patch):
    """An object in a patch would become the value (RFC 7396, section 2), and no field here is one."""
    before = read(admin, sue)
    answer = admin.patch(f"/users/{sue.pk}", patch, content_type=MERGE)
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", set(patch))
    assert read(admin, sue) == before


def test_accept_patch_tells_the_patch_formats(admin, sue):
    expected = f"application/json, {MERGE}"
    assert admin("OPTIONS", f"/users/{sue.pk}").headers["Accept-Patch"] == expected
    refused = admin("PATCH", f"/users/{sue.pk}", raw=b"[]", content_type="application/json-patch+json")
    assert (refused.status, refused.headers["Accept-Patch"]) == (415, expected)
    assert "Accept-Patch" not in admin("OPTIONS", "/orders").headers
