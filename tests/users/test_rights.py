"""Section 6: who may do what with which user."""

import pytest

from tests.conftest import with_key


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
def test_refusal_of_what_is_visible_names_the_fields(make_user, other, role, target, body):
    caller = make_user(role)
    own, row = ({"name"}, caller) if target == "own" else (set(), other.user)
    answer = with_key(caller).patch(f"/users/{row.pk}", body)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert answer.fields == set(body) - own


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


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_role_that_stays_as_it_is_needs_no_password(admin, support, method):
    body = {"name": "New", "email": support.user.email, "role": "support"}
    answer = admin(method, f"/users/{support.user.pk}", body)
    assert (answer.status, answer.data["name"], answer.data["role"]) == (200, "New", "support")
