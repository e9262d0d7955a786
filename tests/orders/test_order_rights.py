"""Whose orders and payments a caller may read and create. Both obey the same rules."""

import uuid

import pytest

from config.api.principal import SCOPES
from orders.models import Order
from payments.models import Payment
from tests.conftest import with_key

BODIES = {"orders": {"item": "Book", "qty": 2}, "payments": {"amount": 12.5}}
ROLES = ["user", "support", "admin"]


@pytest.fixture(params=BODIES)
def kind(request):
    return request.param


@pytest.fixture
def create(kind):
    def post(caller, **fields):
        return caller.post(f"/{kind}", {**BODIES[kind], **fields}, idempotency_key=str(uuid.uuid4()))

    return post


@pytest.fixture
def count(kind):
    return {"orders": Order, "payments": Payment}[kind].objects.count


NOBODY = [None, 0, -1, 2**62, 2**63 - 1, 2**63, -(2**63), 10**30, 10**60, "1", "", True, 1.0, [], {}]


def test_user_id_that_is_no_users_is_refused(create, count, admin):
    for user_id in NOBODY:
        refused = create(admin, user_id=user_id)
        assert (refused.status, refused.code, refused.fields) == (400, "VALIDATION_ERROR", {"user_id"})
        assert count() == 0


@pytest.mark.parametrize("role", ["user", "support"])
def test_user_id_that_is_null_is_refused(create, count, make_user, role):
    refused = create(with_key(make_user(role)), user_id=None)
    assert (refused.status, refused.code, refused.fields, count()) == (400, "VALIDATION_ERROR", {"user_id"}, 0)


@pytest.mark.parametrize("role", ["user", "support"])
def test_who_may_name_nobody_else_is_not_told_whether_there_is_such_a_user(create, count, make_user, role):
    """Nor what else is wrong: the field is refused before any value is looked at."""
    for user_id in NOBODY[1:]:
        caller = with_key(make_user(role))
        for others in ({}, {"item": "", "qty": "x", "amount": 0, "colour": "red"}):
            refused = create(caller, user_id=user_id, **others)
            assert (refused.status, refused.code, refused.fields) == (403, "FORBIDDEN", {"user_id"})
        assert count() == 0


def test_user_id_of_a_removed_user_is_refused(create, count, admin, other):
    assert create(admin, user_id=other.user.pk).status == 201
    assert admin.delete(f"/users/{other.user.pk}").status == 204
    refused = create(admin, user_id=other.user.pk)
    assert (refused.status, refused.fields, count()) == (400, {"user_id"}, 1)


@pytest.mark.parametrize("role", ROLES)
def test_list_of_a_user_holds_its_rows_only(create, kind, make_user, other, role):
    caller = with_key(make_user(role))
    theirs, own = create(other).data["id"], create(caller).data["id"]
    listed = caller.get(f"/users/{caller.user.pk}/{kind}")
    assert ([item["id"] for item in listed.data], listed.meta["total"]) == ([own], 1)
    of_other = caller.get(f"/users/{other.user.pk}/{kind}")
    if role == "user":
        assert (of_other.status, of_other.code) == (404, "NOT_FOUND")
    else:
        assert ([item["id"] for item in of_other.data], of_other.meta["total"]) == ([theirs], 1)


def test_list_of_nobody_is_not_found(admin, kind):
    answer = admin.get(f"/users/999999999/{kind}")
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


def test_link_to_the_user_needs_the_scope_to_read_it(create, kind, user):
    row = create(user).data
    assert set(row["_links"]) == {"self", "user"}
    limited = with_key(user.user, set(SCOPES) - {"users:read"})
    assert set(limited.get(f"/{kind}/{row['id']}").data["_links"]) == {"self"}


def test_own_link_needs_the_scope_to_read(create, kind, user):
    writer = with_key(user.user, {f"{kind}:write"})
    created = create(writer)
    assert (created.status, created.data["_links"]) == (201, {})
