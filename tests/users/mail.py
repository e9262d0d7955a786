"""What tests of mailed links have in common: asking, delivering, reading, following."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core import mail
from django.utils import timezone

from config.models import OutboxEntry
from config.outbox import deliver
from tests.conftest import Caller, new_client
from tests.plugins import secrecy
from users.links import Purpose, build_token, get_state
from users.models import User

NEW_PASSWORD = "four other words instead"
_LINK = re.compile(r"https://api\.example\.com(/session/(reset|verify)/(\S+))")


def read_links() -> list[str]:
    """The paths of the links in the mail that is due, each of which is sent now."""
    mail.outbox.clear()
    deliver()
    links = [_LINK.search(str(message.body)) for message in mail.outbox]
    for link in links:
        secrecy.watch.note(link[3], "token of a link")
    return [link[1] for link in links]


def read_token() -> str:
    """The token of the one message that is due."""
    (link,) = read_links()
    return link.rpartition("/")[2]


def make_token(purpose: Purpose, user: User, age: timedelta = timedelta()) -> str:
    return build_token(purpose, user.pk, get_state(user), timezone.now() - age)


def ask_page(email: str) -> tuple[int, bytes]:
    client = new_client(checks_csrf=False)
    response = client.post("/session/reset", {"email": email})
    return response.status_code, response.content


def ask_api(email: str) -> tuple[int, bytes]:
    answer = Caller().post("/api/password-resets", {"email": email})
    return answer.status, answer.response.content


def use_page(kind: str) -> Callable[[str], int]:
    return lambda token: (
        new_client(checks_csrf=False).post(f"/session/{kind}/{token}", {"password": NEW_PASSWORD}).status_code
    )


def use_api(kind: str, body: Any) -> Callable[[str], int]:
    return lambda token: Caller().post(f"/api/v2/{kind}/{token}", body).status


SET_BY_API = use_api("password-resets", {"password": NEW_PASSWORD})
VERIFY_BY_API = use_api("email-verifications", None)


def statuses() -> list[str]:
    return [*OutboxEntry.objects.order_by("id").values_list("status", flat=True)]
