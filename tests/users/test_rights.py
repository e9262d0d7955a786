"""Section 6: who may do what with which user."""

import pytest

from tests.conftest import PASSWORD, with_key, with_password
from users.models import User


@pytest.fixture
def case(make_user):
    """The caller of a role, and the row it acts on: its own or another's. A second administrator stays behind."""

    def prepare(role, target, **columns):
        make_user("admin")
        caller = make_user(role, **columns)
        return caller, caller if target == "own" else make_user("support", name="Otto Other")

    return prepare


@pytest.mark.parametrize(
    ("role", "target", "body"),
    [
        ("user", "own", {"role": "admin"}),
        ("user", "own", {"status": "inactive"}),
        ("user", "own", {"name": "New", "role": "support", "status": "inactive"}),
        ("user", "own", {"external_id": "crm-7"}),
        ("support", "own", {"role": "user"}),
        ("support", "own", {"role": "admin"}),
        ("support", "other", {"name": "New"}),
        ("support", "other", {"email": "new@example.com"}),
        ("support", "other", {"role": "user"}),
        ("support", "other", {"status": "inactive"}),
    ],
)
def test_refusal_of_what_is_visible_names_the_fields(case, role, target, body):
    caller, row = case(role, target)
    own = {"name"} if target == "own" else set()
    answer = with_key(caller).patch(f"/users/{row.pk}", body)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert answer.fields == set(body) - own


@pytest.mark.parametrize("given", ["admin", "support"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_giving_a_role_needs_a_credential_made_from_the_password(make_user, method, given):
    administrator, row = make_user("admin", password=PASSWORD), make_user("user", name="Ann")
    path = "/users" if method == "POST" else f"/users/{row.pk}"
    body = {"name": "New", "email": "new@example.com", "role": given}
    refused = with_key(administrator)(method, path, body)
    assert (refused.status, refused.code, refused.fields) == (403, "FORBIDDEN", {"role"})
    assert not User.objects.filter(name="New").exists()
    allowed = with_password(administrator)(method, path, body)
    assert allowed.status == (201 if method == "POST" else 200)
    assert User.objects.get(name="New").role == given


WRONG = [None, "", "captain", "x" * 9000, 5, True, 1.5, [], {}, ["admin"], {"role": "admin"}]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_field_of_administrators_is_refused_before_any_value_is_looked_at(make_user, *, version, method):
    caller = with_key(make_user("support"))
    for field in ["role", "status", "external_id"]:
        for value in WRONG:
            if value is None and (field, method) in {
                ("status", "PATCH"),
                ("external_id", "PATCH"),
                ("external_id", "PUT"),
            }:
                continue  # The present value.
            body = {"name": "", "email": 5, field: value, "password": "weak", "colour": "red"}
            answer = caller(method, f"/api/v{version}/users/{caller.user.pk}", body)
            assert (answer.status, answer.code, answer.fields) == (403, "FORBIDDEN", {field, "password"})


@pytest.mark.parametrize("given", ["admin", "support"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_role_that_a_key_may_not_give_is_refused_before_any_value_is_looked_at(admin, user, method, given):
    path = "/users" if method == "POST" else f"/users/{user.user.pk}"
    answer = admin(method, path, {"name": "", "email": 5, "role": given, "status": "gone"})
    assert (answer.status, answer.code, answer.fields) == (403, "FORBIDDEN", {"role"})
    # The key may give another role, of which these are none.
    answer = admin(method, path, {"name": "New", "email": "new@example.com", "role": f"{given}s"})
    assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"role"})


def test_taking_a_role_needs_no_password(admin, make_user):
    row = make_user("support")
    answer = admin.patch(f"/users/{row.pk}", {"role": "user"})
    assert (answer.status, answer.data["role"]) == (200, "user")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_role_that_stays_as_it_is_needs_no_password(admin, support, method):
    body = {"name": "New", "email": support.user.email, "role": "support"}
    answer = admin(method, f"/users/{support.user.pk}", body)
    assert (answer.status, answer.data["name"], answer.data["role"]) == (200, "New", "support")
