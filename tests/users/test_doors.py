"""Every door through which a user gets in, in every state of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from django.utils import timezone

from tests.accounts.conftest import log_in
from tests.accounts.oauth.actors import Person, bearer, register
from tests.conftest import PASSWORD, Caller, new_client, with_password
from tests.users.mail import SET_BY_API, VERIFY_BY_API, ask_api, ask_page, make_token, read_links, use_page
from users import services
from users.links import Purpose
from users.models import User

RESET, VERIFICATION, INVITATION = Purpose


def change(user: User, **changes: Any) -> None:
    services.change(User.objects.get(pk=user.pk), changes)


STATES: Mapping[str, Callable[[User], None]] = {
    "no account": lambda user: None,
    "inactive": lambda user: change(user, status="inactive"),
    "removed": services.remove,
    "no password": lambda user: change(user, password=None),
    "unverified": lambda user: None,
    "verified": lambda user: change(user, email_verified_at=timezone.now()),
}


def sign_in(user: User) -> int:
    form = {"username": user.email, "password": PASSWORD}
    return new_client(checks_csrf=False).post("/session/login", form).status_code


def use_grant(user: User) -> int:
    return bearer(user.access_token).get("/api/protected").status  # type: ignore[attr-defined]


def count_messages(ask: Callable[[str], Any]) -> Callable[[User], int]:
    def count(user: User) -> int:
        ask(user.email)
        return len(read_links())

    return count


def use(use_token: Callable[[str], int], purpose: Purpose) -> Callable[[User], int]:
    # Of the user as it is in this state: one of before is dead in most of them.
    return lambda user: use_token(make_token(purpose, User._base_manager.filter(pk=user.pk).first() or user))


def ask_for(path: str) -> Callable[[User], int]:
    return lambda user: user.admin.post(f"/users/{user.pk}/{path}").status  # type: ignore[attr-defined]


# What each answers in each of STATES; of a door that mails to whoever asks, how many messages there are.
LOG_IN, MAILED = [401, 401, 401, 401, 200, 200], [0, 0, 0, 0, 1, 1]
DOORS: dict[str, tuple[Callable[[User], int], list[int]]] = {
    "Basic": (lambda user: with_password(user).get("/api/protected").status, LOG_IN),
    "JWT": (lambda user: log_in(user.email).status, LOG_IN),
    "session": (sign_in, [200, 200, 200, 200, 302, 302]),
    # A grant has a life of its own, which a change of the password does not end.
    "OAuth": (use_grant, [401, 401, 401, 200, 200, 200]),
    "ask for a reset": (count_messages(ask_api), MAILED),
    "ask for a reset on the page": (count_messages(ask_page), MAILED),
    "ask for a verification": (ask_for("email-verifications"), [404, 409, 404, 202, 202, 409]),
    "ask for an invitation": (ask_for("invitations"), [404, 409, 404, 202, 409, 409]),
}
USES = {
    (RESET, INVITATION): {"API": (SET_BY_API, 204), "page": (use_page("reset"), 200)},
    (VERIFICATION,): {"API": (VERIFY_BY_API, 204), "page": (use_page("verify"), 200)},
}
for purposes, ways in USES.items():
    for purpose, (way, (use_token, done)) in product(purposes, ways.items()):
        name = f"link of {purpose} by {way}"
        DOORS[name] = use(use_token, purpose), [404, 404, 404, done, done, done]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("door", DOORS)
def test_door_in_every_state(make_user: Any, admin: Caller, door: str, state: str) -> None:
    ask, answers = DOORS[door]
    ann: Any = make_user(email="Ann@example.com", password=PASSWORD)
    ann.admin = admin
    # To get a grant takes longer than to use most of the doors.
    ann.access_token = Person(ann).tokens(register())["access_token"] if door == "OAuth" else ""
    STATES[state](ann)
    if state == "no account":
        ann.pk, ann.email, ann.access_token = 2**40, "nobody@example.com", "nobodys"
    assert ask(ann) == answers[list(STATES).index(state)]
