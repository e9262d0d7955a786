"""An email belongs to one user, compared by NFKC and case folding, and has no character that nobody sees."""

import io
import json
import sys
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import PASSWORD, Caller, new_client, with_password
from tests.users.test_admin_import import choose, get_errors
from users.models import User

SAME = [
    ("ann@example.com", "ann@example.com"),
    ("Ann@Example.com", "aNN@eXAMPLE.COM"),
    ("ann@bücher.example", "ann@BÜCHER.example"),
    ("ann@bücher.example", "ann@bu\u0308cher.example"),
    ("ann@παράδειγμα.example", "ANN@ΠΑΡΆΔΕΙΓΜΑ.example"),
    ("kim@example.com", "\N{KELVIN SIGN}im@example.com"),
    ("sue@example.com", "\N{LATIN SMALL LETTER LONG S}ue@example.com"),
    ("x@exit.example", "x@ex\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}t.example"),
    ("x@exit.example", "x@exi\N{FULLWIDTH LATIN SMALL LETTER T}.example"),
    ("x@ﬁn.example", "x@FIN.example"),
    ("x@가.example", "x@\u1100\u1161.example"),
]
some = pytest.mark.parametrize(("taken", "wanted"), SAME[1:8:2])


@pytest.mark.parametrize(("taken", "wanted"), [*SAME, *(pair[::-1] for pair in SAME[3:])])
def test_email_that_is_taken_is_a_conflict(admin, user, taken, wanted):
    assert admin.post("/users", {"name": "First", "email": taken}).status == 201
    own = f"/users/{user.user.pk}"
    before = user.get(own).data
    for method, path in (("POST", "/users"), ("PUT", own), ("PATCH", own)):
        refused = (admin if method == "POST" else user)(method, path, {"name": "Second", "email": wanted})
        assert (refused.status, refused.code, refused.fields) == (409, "CONFLICT", {"email"})
    assert not User.objects.filter(name="Second").exists()
    assert user.get(own).data == before


def post_lines(caller, *emails, query=""):
    lines = "\n".join(json.dumps({"name": "N", "email": email}) for email in emails)
    return caller("POST", f"/api/v2/users{query}", raw=lines.encode(), content_type="application/x-ndjson")


@some
def test_lines_of_a_bulk_are_compared_like_single_users(admin, make_user, taken, wanted):
    make_user(email=taken)
    refused = post_lines(admin, "new@example.com", wanted, "NEW@example.com")
    assert refused.fields == {"lines[2].email", "lines[3].email"}
    partly = post_lines(admin, "new@example.com", wanted, "NEW@example.com", query="?partial=true")
    assert [line["status"] for line in partly.data] == [201, 409, 409]
    User.objects.exclude(pk=admin.user.pk).delete()
    assert post_lines(admin, taken, wanted).fields == {"lines[2].email"}
    twice = post_lines(admin, taken, wanted, query="?partial=true").data
    assert [line["status"] for line in twice] == [201, 409]
    assert twice[1]["error"]["details"] == [{"field": "email", "message": "An earlier line has this email address."}]


@some
def test_every_door_knows_a_user_by_any_spelling_of_the_email(admin, make_user, monkeypatch, *, taken, wanted):
    owner = make_user("admin", email=taken, password=PASSWORD)
    assert Caller().post("/api/login", {"email": wanted, "password": PASSWORD}).status == 200
    assert with_password(User(email=wanted)).get("/api/protected").data["user"]["id"] == owner.pk
    form = {"username": wanted, "password": PASSWORD}
    for page in ("/session/login", "/admin/login/"):
        assert new_client(checks_csrf=False).post(page, form).status_code == 302, page
    found = admin.get(f"/users?email={quote(wanted)}")
    assert [(row["id"], row["email"]) for row in found.data] == [(owner.pk, taken)]
    printed = io.StringIO()
    call_command("create_api_key", wanted, stdout=printed)
    assert (
        Caller(headers={"X-API-Key": printed.getvalue().strip()}).get("/api/protected").data["user"]["email"] == taken
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD))
    with pytest.raises(CommandError, match="Another user"):
        call_command("create_user", wanted, name="N")
    browser = new_client(checks_csrf=False)
    browser.force_login(owner)
    row = {"name": "N", "email": wanted, "role": "user", "status": "active", "usable_password": "false"}
    assert "Another user has this email address." in browser.post("/admin/users/user/add/", row).content.decode()
    problems = get_errors(choose(browser, f"name,email\nN,{wanted}\n"))
    assert problems == [(2, "email: Another user has this email address.")]
    shown = browser.get("/admin/users/user/", {"q": wanted}).content.decode()
    assert f"/admin/users/user/{owner.pk}/change/" in shown


UNSEEN = {
    "zero width space": "ann@ex\u200bample.com",
    "soft hyphen": "ann@ex\u00adample.com",
    "zero width joiner": "ann@ex\u200dample.com",
    "direction": "ann@ex\u202eample.com",
    "byte order mark": "ann@\ufeffexample.com",
    "variation selector": "ann@❤\ufe0f.example",
    "combining joiner": "ann@ex\u034fample.com",
    "filler": "ann@\u3164.example",
    "braille blank": "ann@\u2800.example",
    "blank": '"ann\\ lee"@example.com',
    "no-break space": "ann@ex\u00a0ample.com",
    "ideographic space": "ann@ex\u3000ample.com",
    "private": "ann@\ue000.example",
    "unassigned": "ann@\u0378.example",
    "tag": "ann@ex\U000e0061ample.com",
    "control": "ann@ex\u0085ample.com",
    "escape": '"\\\x01"@example.com',
}


def test_character_that_nobody_sees_is_refused(admin):
    for name, email in UNSEEN.items():
        created = admin.post("/users", {"name": "N", "email": email})
        assert (created.status, created.fields) == (400, {"email"}), name


@pytest.mark.parametrize("name", ["zero width space", "blank", "unassigned"])
def test_character_that_nobody_sees_is_refused_at_every_door(admin, make_user, monkeypatch, name):
    email = UNSEEN[name]
    assert post_lines(admin, "new@example.com", email).fields == {"lines[2].email"}
    own = make_user("admin")
    changed = admin.patch(f"/users/{own.pk}", {"email": email})
    assert (changed.status, changed.fields) == (400, {"email"})
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD))
    with pytest.raises(CommandError, match="email"):
        call_command("create_user", email, name="N")
    browser = new_client(checks_csrf=False)
    browser.force_login(own)
    row = {"name": "N", "email": email, "role": "user", "status": "active", "usable_password": "false"}
    assert browser.post("/admin/users/user/add/", row).status_code == 200
    assert browser.post(f"/admin/users/user/{own.pk}/change/", row).status_code == 200
    cell = email.replace('"', '""')
    assert {told.split(":")[0] for _, told in get_errors(choose(browser, f'name,email\nN,"{cell}"\n'))} == {"email"}
    assert not User.objects.filter(name="N").exists()


@pytest.mark.parametrize("email", [*UNSEEN.values(), "\0", "\ud800", "ann@\U00058669.example"])
def test_email_that_nobody_can_have_is_nobodys_at_every_door(admin, email):
    if "\ud800" not in email:
        found = admin.get(f"/users?email={quote(email)}")
        assert found.status == 400 or found.data == []
        assert with_password(User(email=email)).get("/users").status == 401
    assert Caller().post("/api/login", {"email": email, "password": PASSWORD}).status in {400, 401}
    with pytest.raises(CommandError, match="no user has the email"):
        call_command("create_api_key", email)


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
