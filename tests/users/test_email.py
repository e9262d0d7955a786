"""An email belongs to one user, without regard to case."""

import pytest

from users.models import User

SAME = [
    ("ann@example.com", "ann@example.com"),
    ("Ann@Example.com", "aNN@eXAMPLE.COM"),
    ("ann@bücher.example", "ann@BÜCHER.example"),
    ("ann@παράδειγμα.example", "ANN@ΠΑΡΆΔΕΙΓΜΑ.example"),
    ("kim@example.com", "\N{KELVIN SIGN}im@example.com"),
]


@pytest.mark.parametrize(("taken", "wanted"), SAME)
def test_email_that_is_taken_is_a_conflict_at_creation(admin, taken, wanted):
    assert admin.post("/users", {"name": "First", "email": taken}).status == 201
    second = admin.post("/users", {"name": "Second", "email": wanted})
    assert (second.status, second.code, second.fields) == (409, "CONFLICT", {"email"})
    assert not User.objects.filter(name="Second").exists()


@pytest.mark.parametrize(("taken", "wanted"), SAME)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_email_that_is_taken_is_a_conflict_at_change(admin, user, make_user, *, method, taken, wanted):
    make_user(email=taken)
    before = user.get(f"/users/{user.user.pk}").data
    answer = user(method, f"/users/{user.user.pk}", {"name": "New Name", "email": wanted})
    assert (answer.status, answer.code, answer.fields) == (409, "CONFLICT", {"email"})
    assert user.get(f"/users/{user.user.pk}").data == before


def test_case_of_ones_own_email_may_change(user):
    shouted = user.user.email.upper()
    answer = user.patch(f"/users/{user.user.pk}", {"email": shouted})
    assert answer.status == 200
    assert user.get(f"/users/{user.user.pk}").data["email"] == shouted


def test_email_of_a_removed_user_is_free_again(admin, make_user):
    row = make_user(email="ann@example.com")
    assert admin.delete(f"/users/{row.pk}").status == 204
    again = admin.post("/users", {"name": "New Ann", "email": "ANN@example.com"})
    assert again.status == 201
    assert again.data["id"] != row.pk
    assert [item["id"] for item in admin.get("/users?email=ann@example.com").data] == [again.data["id"]]
