"""Who is about to remove rows reads what goes with them, and what stays."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("selected", [False, True])
def test_confirmation_says_what_goes_and_what_stays(pages, make_user, selected):
    user = make_user(name="Leaving")
    if selected:
        page = pages.post("/admin/users/user/", {"action": "delete_selected", "_selected_action": [str(user.pk)]})
    else:
        page = pages.get(f"/admin/users/user/{user.pk}/delete/")
    assert page.status_code == 200
    text = page.content.decode()
    for said in ("Name, email and password are erased", "keys, tokens and sessions stop working", "payments are kept"):
        assert said in text
    assert "Leaving" in text
