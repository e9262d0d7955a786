from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.conftest import PASSWORD, Answer, Caller
from users.models import User

WRONG = "not the password at all"


def log_in(email: str, password: str = PASSWORD, **headers: str) -> Answer:
    return Caller().post("/api/login", {"email": email, "password": password}, **headers)


def refresh(token: str) -> Answer:
    return Caller().post("/api/token/refresh", {"refresh_token": token})


def log_out(token: str) -> Answer:
    return Caller().post("/api/logout", {"refresh_token": token})


def refused(answer: Answer) -> bool:
    return (answer.status, answer.code) == (401, "INVALID_TOKEN")


def run_action(pages: Client, path: str, action: str, *rows: Any, confirmed: bool = True, follow: bool = False) -> Any:
    """The page that answers an action of the admin, or where that leads."""
    form = {"action": action, "_selected_action": [row.pk for row in rows]}
    return pages.post(path, form | ({"post": "yes"} if confirmed else {}), follow=follow)


@pytest.fixture
def owner(make_user: Any) -> User:
    return make_user(name="Ann Lee", email="Ann@example.com", password=PASSWORD)


@pytest.fixture
def pair(owner: User) -> dict[str, Any]:
    """The tokens of a fresh login."""
    answer = log_in(owner.email)
    assert answer.status == 200, answer
    return answer.data
