"""POST /users without a credential."""

import pytest

from tests.conftest import PASSWORD, Caller, with_password
from users.models import User

ANN = {"name": "Ann Lee", "email": "ann@example.com", "password": PASSWORD}


@pytest.fixture
def open_signup(settings):
    settings.OPEN_SIGNUP = True


@pytest.mark.usefixtures("open_signup")
class TestOpen:
    @pytest.mark.parametrize("given", [{}, {"role": "user"}, {"role": "user", "status": "active"}])
    def test_stranger_becomes_a_user_who_can_log_in(self, nobody, given):
        answer = nobody.post("/users", {**ANN, **given})
        assert answer.status == 201, answer
        assert (answer.data["role"], answer.data["status"]) == ("user", "active")
        assert answer.headers["Location"] == f"/users/{answer.data['id']}"
        row = User.objects.get(pk=answer.data["id"])
        assert with_password(row).get(answer.headers["Location"]).data["email"] == "ann@example.com"

    @pytest.mark.parametrize("role", ["support", "admin"])
    def test_stranger_cannot_give_a_role(self, nobody, role):
        answer = nobody.post("/users", {**ANN, "role": role})
        assert (answer.status, answer.code, answer.fields) == (403, "FORBIDDEN", {"role"})
        assert not User.objects.exists()

    def test_stranger_cannot_set_what_is_for_administrators(self, nobody):
        for name in ("status", "external_id", "password_hash"):
            answer = nobody.post("/users", {**ANN, name: "inactive"})
            assert (answer.status, answer.fields) == (403, {name})
        assert not User.objects.exists()

    def test_stranger_is_shown_no_link_that_needs_a_credential(self, nobody):
        assert nobody.post("/users", ANN).data["_links"] == {}

    @pytest.mark.parametrize("headers", [{"X-API-Key": "urs_none"}, {"Authorization": "Basic bm9ib2R5Ong="}])
    def test_bad_credential_does_not_fall_back_to_a_stranger(self, db, headers):
        answer = Caller(headers=headers).post("/users", ANN)
        assert (answer.status, answer.code) == (401, "INVALID_CREDENTIALS")
        assert not User.objects.exists()

    def test_nothing_but_creation_is_open(self, nobody, user):
        path = f"/users/{user.user.pk}"
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            assert nobody(method, path, ANN).code == "UNAUTHENTICATED", method
        assert nobody.get("/users").status == 401
        assert nobody.post("/orders", {"item": "x", "qty": 1}).status == 401
