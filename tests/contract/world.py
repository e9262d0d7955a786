"""People of every role with rows and credentials, made once for many questions of which none leaves a trace."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from accounts import logins
from accounts.services import create_api_key
from config.http.media_types import NDJSON
from config.models import AuditEvent
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.accounts.credentials import credentials_of, reader, robot
from tests.conftest import PASSWORD, Answer, Caller
from tests.contract.matrix import Line
from tests.contract.routes import Route
from tests.events.webhooks.rows import make_pair
from users import services
from users.links import Purpose, build_token, get_state
from users.models import User

SAFE = {"GET", "HEAD", "OPTIONS"}
ROLES = ("user", "support", "admin")
NEW_PASSWORD = "four other words instead"
# Of bcrypt, whose cost is the least there is.
HASH = "$2b$04$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"
LIMITS = ("PRINCIPAL", "ANONYMOUS", "LOGIN_ACCOUNT", "LOGIN_ADDRESS")
# Every column that a request may write; but not when a key was last used.
_STATE = """
SELECT string_agg(line, '|' ORDER BY line) FROM (
    SELECT 'user' || t::text FROM users_user t UNION ALL
    SELECT 'order' || t::text FROM orders_order t UNION ALL
    SELECT 'payment' || t::text FROM payments_payment t UNION ALL
    SELECT 'post' || t::text FROM posts_post t UNION ALL
    SELECT 'comment' || t::text FROM posts_comment t UNION ALL
    SELECT 'webhook' || t::text FROM config_webhook t UNION ALL
    SELECT 'delivery' || t::text FROM config_webhookdelivery t UNION ALL
    SELECT 'key' || (id, user_id, name, scopes, expires_at, revoked_at, rotated_at)::text FROM accounts_apikey
) AS every (line)
"""


@contextmanager
def rolled_back() -> Iterator[None]:
    """Takes back what is written inside, as the transaction around each test of Django's TestCase does."""
    block = transaction.atomic()
    block._from_testcase = True  # lets the service open transactions that it calls durable
    with block:
        yield
        transaction.set_rollback(True)


@contextmanager
def populated() -> Iterator[World]:
    """The world, with no limit on how much is asked."""
    with override_settings(**{f"RATE_LIMIT_{name}": 0 for name in LIMITS}), rolled_back():
        yield World()


class World:
    def __init__(self) -> None:
        self.people = {role: self._person(role) for role in ROLES}
        self.other = self._person("user", "other")
        # Lets the other administrator go.
        self._person("admin", "second")
        self.rows = {user.pk: self._rows_of(user) for user in (*self.people.values(), self.other)}
        self.credentials = {role: credentials_of(user, reader(), robot(user)) for role, user in self.people.items()}
        login = Caller().post("/api/login", {"email": self.other.email, "password": PASSWORD})
        self.refresh_token = login.data["refresh_token"]
        self.state = state()

    @staticmethod
    def _person(role: str, name: str = "") -> User:
        name = name or role
        return services.create(name=name, email=f"{name}@example.com", role=role, password=PASSWORD)

    @staticmethod
    def _rows_of(user: User) -> dict[str, int]:
        """One row of each resource, by the name of its collection."""
        post = Post.objects.create(user=user, title="A title")
        return {
            "users": user.pk,
            "orders": Order.objects.create(user=user, item="Tea", qty=2).pk,
            "payments": Payment.objects.create(user=user, amount="12.30").pk,
            "posts": post.pk,
            "comments": Comment.objects.create(post=post, user=user, text="A comment").pk,
            "api-keys": create_api_key(user, name="kept")[0].pk,
            "sessions": logins.log_in(user).access["sid"],
            "audit-events": AuditEvent.objects.filter(user=user).latest("id").pk,
            **dict.fromkeys(["webhooks", "deliveries"], make_pair(user)),
        }

    def target(self, role: str, whose: str) -> User:
        return self.people[role] if whose == "own" else self.other

    def path(self, route: Route, target: User, prefix: str = "/api/v1") -> str:
        rows = self.rows[target.pk]
        parents = {"user_id": target.pk, "post_id": rows["posts"], "api_key_id": rows["api-keys"]}
        parents |= dict.fromkeys(["webhook_id", "delivery_id"], rows["webhooks"])
        collection = route.template.split("/", maxsplit=1)[0]
        purpose = Purpose.PASSWORD_RESET if collection == "password-resets" else Purpose.EMAIL_VERIFICATION
        token = build_token(purpose, target.pk, get_state(target), timezone.now())
        return route.path(prefix, id=rows.get(collection, 0), **parents, token=token)

    def listed_row(self, route: Route, target: User) -> int:
        """The row of the target's that a list would show."""
        return self.rows[target.pk][route.template.split("/")[-1]]

    def ask(self, line: Line, route: Route, caller: Caller, target: User, method: str | None = None) -> Answer:
        """Sends the request of a line, of which nothing is left. A request that is refused must not have had an effect.

        Args:
            method: instead of the line's own.
        """
        # Version 1 knows no lines.
        path = self.path(route, target, "/api/v2" if line.has_lines else "/api/v1")
        if route.is_list and (method or line.method) in SAFE:
            path += "?limit=100"
        return Answer(self.fetch(line, path, caller, target, method))

    def fetch(
        self, line: Line, path: str, caller: Caller, target: User, method: str | None = None, **headers: str
    ) -> Any:
        """Does what `ask` does, at any form of the address. The answer need not be JSON."""
        method = method or line.method
        content = self.content_of(line, target) if method in {"POST", "PUT", "PATCH"} else {}
        if str(line) == "POST payments":
            headers["Idempotency-Key"] = "k"
        with rolled_back():
            response = caller.fetch(method, path, **content, **headers)
            # A stream that is not read to its end keeps its place.
            deque(response, maxlen=0)
            refused = response.status_code >= 400 and method not in SAFE
            assert not refused or state() == self.state, f"{line} was refused, and had an effect"
        return response

    def content_of(self, line: Line, target: User) -> dict[str, Any]:
        """The arguments of a Caller that give the body of a line."""
        body = self.body_of(line, target)
        if not line.has_lines:
            return {"body": body}
        return {"raw": b"\n".join(json.dumps(each).encode() for each in body), "Content_Type": NDJSON}

    def body_of(self, line: Line, target: User) -> Any:
        user = {"name": "New", "email": "new@example.com"}
        order, post = {"item": "Book", "qty": 1}, {"title": "New"}
        bodies: dict[str, Any] = {
            "POST users": user,
            "POST:password users": {**user, "password": NEW_PASSWORD},
            "POST:role users": {**user, "role": "support"},
            "POST:foreign users": {**user, "external_id": "crm-7"},
            "POST:hash users": {**user, "password_hash": HASH},
            "POST:lines users": [{**user, "email": "first@example.com"}, user],
            "POST:lines-role users": [{**user, "email": "first@example.com"}, {**user, "role": "support"}],
            "PUT users/<id>": user,
            "PATCH users/<id>": {"name": "New"},
            "PATCH:password users/<id>": {
                "password": NEW_PASSWORD,
                **({} if target == self.other else {"current_password": PASSWORD}),
            },
            "PATCH:role users/<id>": {"role": "admin"},
            "PATCH:status users/<id>": {"status": "inactive"},
            "PATCH:foreign users/<id>": {"external_id": "crm-7"},
            "POST orders": {**order, "user_id": target.pk},
            "POST:lines orders": [order, {**order, "user_id": target.pk}],
            "POST payments": {"user_id": target.pk, "amount": 5},
            "POST users/<user_id>/posts": post,
            "POST:lines users/<user_id>/posts": [post, post],
            "PUT posts/<id>": post,
            "PATCH posts/<id>": post,
            "POST posts/<post_id>/comments": {"text": "New"},
            "PUT comments/<id>": {"text": "New"},
            "PATCH comments/<id>": {"text": "New"},
            "POST api-keys": {"name": "New"},
            "POST api-keys/<api_key_id>/rotations": {},
            "POST webhooks": {"url": "https://example.com/", "types": ["order.created"]},
            "PATCH webhooks/<id>": {"description": "New"},
            "POST webhooks/<webhook_id>/rotations": {},
            "POST webhooks/<webhook_id>/pings": {},
            "POST webhooks/<webhook_id>/replays": {"cursor": ""},
            "POST webhooks/<webhook_id>/deliveries/<delivery_id>/retries": {},
            "POST users/<user_id>/email-verifications": {},
            "POST users/<user_id>/invitations": {},
            "POST password-resets": {"email": target.email},
            "POST password-resets/<token>": {"password": NEW_PASSWORD},
            "POST email-verifications/<token>": {},
            "POST login": {"email": target.email, "password": PASSWORD},
            "POST token/refresh": {"refresh_token": self.refresh_token},
            "POST logout": {"refresh_token": self.refresh_token},
        }
        return bodies[str(line)]


def state() -> str:
    """What there is, of every resource."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE)
        found: str = cursor.fetchone()[0]
        return found
