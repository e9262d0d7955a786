"""There is always an active administrator."""

import pytest

from users.models import User

DOORS = {
    "PATCH role": ("PATCH", {"role": "user"}),
    "PATCH role to null": ("PATCH", {"role": None}),
    "PATCH status": ("PATCH", {"status": "inactive"}),
    "PUT without role": ("PUT", {"name": "New", "email": "new@example.com"}),
    "PUT with status": ("PUT", {"name": "New", "email": "new@example.com", "role": "admin", "status": "inactive"}),
    "DELETE": ("DELETE", None),
}
KEPT = ("name", "email", "role", "status", "removed_at")


@pytest.fixture(params=DOORS.values(), ids=DOORS)
def leave(request, admin):
    """One way by which an administrator stops being one."""
    method, body = request.param
    return lambda: admin(method, f"/users/{admin.user.pk}", body)


@pytest.fixture
def present(admin):
    return lambda: User._base_manager.filter(pk=admin.user.pk).values(*KEPT).get()


def test_last_active_administrator_cannot_leave(leave, present, admin):
    before = present()
    answer = leave()
    assert (answer.status, answer.code) == (409, "CONFLICT")
    assert present() == before
    assert admin.get("/api/protected").status == 200


def test_others_who_are_no_active_administrators_do_not_count(leave, present, make_user, admin):
    make_user("admin", status="inactive")
    make_user("support")
    gone = make_user("admin")
    assert admin.delete(f"/users/{gone.pk}").status == 204
    before = present()
    assert leave().status == 409
    assert present() == before


def test_administrator_may_leave_while_another_stays(leave, present, make_user):
    before = present()
    make_user("admin")
    assert leave().status in {200, 204}
    assert present() != before


def test_last_administrator_may_change_everything_else(admin):
    answer = admin.patch(f"/users/{admin.user.pk}", {"name": "New", "role": "admin", "status": None})
    assert (answer.status, answer.data["name"]) == (200, "New")


def test_inactive_administrator_may_be_removed(admin, make_user):
    row = make_user("admin", status="inactive")
    assert admin.delete(f"/users/{row.pk}").status == 204
