"""A user's links: what this caller may do now, under the prefix it used."""

import pytest

from config.api.principal import SCOPES
from tests.conftest import with_key

READ = {"self", "orders", "posts", "payments"}
WRITE = {"update", "delete"}


@pytest.mark.parametrize(
    ("role", "target", "expected"),
    [
        ("user", "own", READ | WRITE),
        ("support", "own", READ | WRITE),
        ("support", "other", READ),
        ("admin", "own", READ | WRITE),
        ("admin", "other", READ | WRITE),
    ],
)
def test_links_are_those_that_role_and_row_allow(make_user, other, role, target, expected):
    make_user("admin")
    caller = with_key(make_user(role))
    row = caller.user if target == "own" else other.user
    links = caller.get(f"/users/{row.pk}").data["_links"]
    assert set(links) == expected
    for name in expected - WRITE:
        assert caller.get(links[name]["href"]).status == 200, name
    if "delete" in expected:
        assert caller.delete(links["delete"]["href"]).status == 204


def test_links_have_address_and_method(admin, other):
    path = f"/users/{other.user.pk}"
    assert admin.get(path).data["_links"] == {
        "self": {"href": path},
        "orders": {"href": f"{path}/orders"},
        "posts": {"href": f"{path}/posts"},
        "payments": {"href": f"{path}/payments"},
        "update": {"href": path, "method": "PUT"},
        "delete": {"href": path, "method": "DELETE"},
    }


@pytest.mark.parametrize(
    ("missing", "gone"),
    [("orders:read", {"orders"}), ("posts:read", {"posts"}), ("payments:read", {"payments"}), ("users:write", WRITE)],
)
def test_link_that_needs_a_missing_scope_is_absent(user, missing, gone):
    limited = with_key(user.user, set(SCOPES) - {missing})
    assert set(limited.get(f"/users/{user.user.pk}").data["_links"]) == (READ | WRITE) - gone
