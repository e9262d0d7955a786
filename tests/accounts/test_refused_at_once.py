"""Whatever ends a credential ends it from the next request on; and what it does not end lives on."""

import pytest

from accounts.models import hash_secret
from tests.accounts.conftest import log_in, log_out
from tests.accounts.credentials import BY_PASSWORD, credentials_of, reader, robot
from tests.accounts.oauth.actors import Person, bearer
from tests.conftest import PASSWORD, Caller, new_client

NEW = "four other words instead"
CODES = {
    "API key": "INVALID_CREDENTIALS",
    "API key in the query": "INVALID_CREDENTIALS",
    "JWT": "INVALID_TOKEN",
    "OAuth code": "INVALID_TOKEN",
    "OAuth client credentials": "INVALID_TOKEN",
    "Basic": "INVALID_CREDENTIALS",
    "session": "UNAUTHENTICATED",
}


class Holder:
    """Somebody with a credential of every kind."""

    def __init__(self, user):
        self.user, self.application, self.machine = user, reader(), robot(user)
        self.credentials = credentials_of(user, self.application, self.machine)

    def refused(self):
        """The credentials that are refused, each in its own words. The others answer 200."""
        answers = {name: caller.get("/users") for name, caller in self.credentials.items()}
        refused = {name for name, answer in answers.items() if answer.status != 200}
        for name in refused:
            answer = answers[name]
            assert (answer.status, answer.code) == (401, CODES[name]), name
            assert answer.headers["WWW-Authenticate"]
        return refused

    def token(self, name):
        return self.credentials[name].headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture
def holder(make_user):
    # With this, Basic is in the memory of good pairs when it ends.
    holder = Holder(make_user(password=PASSWORD))
    assert holder.refused() == set()
    assert set(holder.credentials) == set(CODES)
    return holder


def deactivated(holder, admin):
    assert admin.patch(f"/users/{holder.user.pk}", {"status": "inactive"}).status == 200


def removed(holder, admin):
    assert admin.delete(f"/users/{holder.user.pk}").status == 204


def password_changed(holder, admin):
    body = {"password": NEW, "current_password": PASSWORD}
    assert holder.credentials["JWT"].patch(f"/users/{holder.user.pk}", body).status == 200


def password_changed_in_the_browser(holder, admin):
    body = {"password": NEW, "current_password": PASSWORD}
    assert holder.credentials["session"].patch(f"/users/{holder.user.pk}", body).status == 200


def post_password_in_the_admin(holder, admin, **form):
    browser = new_client(checks_csrf=False)
    browser.force_login(admin.user)
    assert browser.post(f"/admin/users/user/{holder.user.pk}/password/", form).status_code == 302


def password_changed_in_the_admin(holder, admin):
    post_password_in_the_admin(holder, admin, password1=NEW, password2=NEW)


def password_taken_away_in_the_admin(holder, admin):
    post_password_in_the_admin(holder, admin, **{"usable_password": "false", "unset-password": "1"})


def key_revoked(holder, admin):
    key = holder.credentials["API key"].headers["X-API-Key"]
    (row,) = [row for row in holder.user.api_keys.all() if row.digest == hash_secret(key)]
    assert holder.credentials["Basic"].delete(f"/api-keys/{row.pk}").status == 204


def logged_out(holder, admin):
    pair = log_in(holder.user.email).data
    holder.credentials["JWT"] = bearer(pair["access_token"], holder.user)
    assert holder.refused() == set()
    assert log_out(pair["refresh_token"]).status == 204


def token_revoked(holder, admin):
    assert holder.application.post("/oauth/revoke", token=holder.token("OAuth code")).status == 200


def machines_token_revoked(holder, admin):
    token = holder.token("OAuth client credentials")
    assert holder.machine.post("/oauth/revoke", token=token).status == 200


def grant_ended(holder, admin):
    ended = Person(holder.user).browser.post("/oauth/grants", {"client_id": holder.application.client_id})
    assert ended.status_code == 302


def signed_out(holder, admin):
    assert holder.credentials["session"].fetch("POST", "/session/logout").status_code == 302


ENDS = [
    (deactivated, {*CODES}),
    (removed, {*CODES}),
    (password_changed, {*BY_PASSWORD}),
    (password_changed_in_the_browser, {*BY_PASSWORD}),
    (password_changed_in_the_admin, {*BY_PASSWORD}),
    (password_taken_away_in_the_admin, {*BY_PASSWORD}),
    (key_revoked, {"API key"}),
    (logged_out, {"JWT"}),
    (token_revoked, {"OAuth code"}),
    (machines_token_revoked, {"OAuth client credentials"}),
    (grant_ended, {"OAuth code"}),
    (signed_out, {"session"}),
]


@pytest.mark.parametrize(("end", "refused"), ENDS, ids=[end.__name__ for end, _ in ENDS])
def test_credential_that_ended_is_refused_from_the_next_request_on_and_no_other(holder, admin, end, refused):
    end(holder, admin)
    assert holder.refused() == refused
    assert Caller(headers=admin.headers).get("/users").status == 200
