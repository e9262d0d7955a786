"""The people, rows and credentials of the contract tests, with rows enough for several pages."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import Caller, with_key
from tests.contract.routes import Route
from tests.contract.world import ROLES, World, rolled_back
from tests.system.differential.comparison import set_sequences

NOBODY = {
    "nobody": Caller(),
    "bad API key": Caller(headers={"X-API-Key": "urs_none"}),
    "bad API key in the query": Caller(query="api_key=urs_none"),
    "bad OAuth token": Caller(headers={"Authorization": "Bearer none"}),
    "bad JWT": Caller(headers={"Authorization": "Bearer e30.e30.none"}),
    "bad Basic": Caller(headers={"Authorization": f"Basic {b64encode(b'nobody@example.com:no').decode()}"}),
    "malformed Basic": Caller(headers={"Authorization": "Basic none"}),
    "unknown scheme": Caller(headers={"Authorization": "Digest none"}),
}


class LargeWorld(World):
    def __init__(self) -> None:
        super().__init__()
        for user in (*self.people.values(), self.other):
            self._add_rows(user)
        self.callers = {
            role: {**callers, "narrow API key": with_key(self.people[role], {"users:read", "posts:write"})}
            for role, callers in self.credentials.items()
        }
        self.callers["nobody"] = NOBODY | self._get_pairs()

    @staticmethod
    def _limited(user: Any) -> dict[tuple[str, bool], dict[str, Caller]]:
        return {}

    @staticmethod
    def _add_rows(user: Any) -> None:
        for number in range(24):
            Order.objects.create(user=user, item=("Tea", "Book", "Lamp – ‘grün’")[number % 3], qty=number % 5 + 1)
            Payment.objects.create(user=user, amount=f"{number % 4 + 1}.50")
            post = Post.objects.create(user=user, title=f"Title {number % 4}", body="A body\nof two lines")
            for _ in range(number % 3):
                Comment.objects.create(post=post, user=user, text="A comment")

    def _get_pairs(self) -> Mapping[str, Caller]:
        """Two credentials at once, and altered ones."""
        own = self.credentials["user"]
        key, token, basic = (own[kind].headers or {} for kind in ("API key", "JWT", "Basic"))
        altered = f"{token['Authorization'][:-3]}AAA"
        return {
            "API key and JWT": Caller(headers={**key, **token}),
            "API key in header and query": Caller(headers=key, query=own["API key in the query"].query),
            "JWT and Basic": Caller(headers={"Authorization": f"{token['Authorization']}, {basic['Authorization']}"}),
            "two API keys": Caller(headers={"X-API-Key": f"{key['X-API-Key']}, {key['X-API-Key']}"}),
            "altered JWT": Caller(headers={"Authorization": altered}),
        }

    def get_path(self, route: Route, prefix: str = "/api/v1", *, whose: str = "user") -> str:
        """The address of a route, filled in with the rows of somebody."""
        rows = self.rows[self.people[whose].pk if whose in ROLES else self.other.pk]
        parents = {"user_id": rows["users"], "post_id": rows["posts"], "api_key_id": rows["api-keys"]}
        parents |= dict.fromkeys(["webhook_id", "delivery_id"], rows["webhooks"])
        return route.path(prefix, id=rows.get(route.template.split("/", maxsplit=1)[0], 0), **parents)


@contextmanager
def populated() -> Iterator[LargeWorld]:
    with rolled_back():
        # Below those of the rows that requests add: a world before this one has left the sequences there.
        set_sequences(1000)
        yield LargeWorld()
