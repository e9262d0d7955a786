from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.contract.world import World, populated
from tests.events.webhooks.rows import make_pair


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    with django_db_blocker.unblock(), populated() as made:
        yield made


@pytest.fixture
def rows(user: Any) -> dict[str, int]:
    """One row of each resource, all of them the plain user's, by the name of its collection."""
    post = Post.objects.create(user=user.user, title="A title", body="A body")
    return {
        "users": user.user.pk,
        "orders": Order.objects.create(user=user.user, item="Tea", qty=2).pk,
        "payments": Payment.objects.create(user=user.user, amount="12.30").pk,
        "posts": post.pk,
        "comments": Comment.objects.create(post=post, user=user.user, text="A comment").pk,
        "api-keys": user.user.api_keys.get().pk,
        "webhooks": make_pair(user.user),
    }


@pytest.fixture
def ids(rows: dict[str, int]) -> dict[str, dict[str, int | str]]:
    """What fills the placeholders of a route, by the collection it starts with."""
    parents = {"user_id": rows["users"], "post_id": rows["posts"], "api_key_id": rows["api-keys"]}
    parents |= dict.fromkeys(["webhook_id", "delivery_id"], rows["webhooks"])
    of_resources = {name: {"id": pk, **parents} for name, pk in rows.items()}
    of_resources["sessions"] = {"id": 0}
    of_links = {name: {"token": "x"} for name in ("password-resets", "email-verifications")}
    return (
        of_resources
        | of_links
        | {name: {} for name in ("audit-events", "events", "login", "logout", "protected", "token", "versions")}
    )
