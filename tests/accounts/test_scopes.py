"""Each endpoint asks for one scope, and tells which when it is missing."""

import pytest

from config.api.principal import SCOPES
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import with_key

RESOURCES = {
    "users": ["/users", "/users/{user}"],
    "orders": ["/orders", "/orders/{order}", "/users/{user}/orders"],
    "payments": ["/payments", "/payments/{payment}", "/users/{user}/payments"],
    "posts": ["/posts", "/posts/{post}", "/users/{user}/posts", "/posts/{post}/comments", "/comments/{comment}"],
}
READS = [
    (method, path, f"{scope}:read")
    for scope, paths in RESOURCES.items()
    for path in paths
    for method in ("GET", "HEAD")
]
CHANGES = [
    (method, path, f"{scope}:write")
    for path, scope in {"/users/{user}": "users", "/posts/{post}": "posts", "/comments/{comment}": "posts"}.items()
    for method in ("PUT", "PATCH", "DELETE")
]
CREATIONS = [
    ("POST", "/users", "users:write"),
    ("POST", "/orders", "orders:write"),
    ("POST", "/payments", "payments:write"),
    ("POST", "/users/{user}/posts", "posts:write"),
    ("POST", "/posts/{post}/comments", "posts:write"),
]
BODY = {
    "name": "New",
    "email": "new@example.com",
    "item": "Book",
    "qty": 1,
    "amount": 5,
    "title": "New",
    "text": "New",
}


@pytest.fixture
def call(make_user):
    """Sends a request as an administrator, whose role allows everything, with a key of some scopes."""
    make_user("admin")
    row = make_user("admin")
    post = Post.objects.create(user=row, title="Old")
    ids = {
        "user": row.pk,
        "order": Order.objects.create(user=row, item="Book", qty=1).pk,
        "payment": Payment.objects.create(user=row, amount=1).pk,
        "post": post.pk,
        "comment": Comment.objects.create(post=post, user=row, text="Old").pk,
    }

    def send(method, path, scopes):
        body = None if method in {"GET", "HEAD", "DELETE"} else BODY
        headers = {"idempotency_key": "k"} if path == "/payments" else {}
        return with_key(row, scopes)(method, path.format(**ids), body, **headers)

    return send


def contents():
    return [list(model.objects.order_by("pk").values()) for model in (Order, Payment, Post, Comment)]


@pytest.mark.parametrize(("method", "path", "scope"), READS + CHANGES + CREATIONS)
def test_endpoint_needs_its_scope_and_no_other(call, method, path, scope):
    before = contents()
    refused = call(method, path, set(SCOPES) - {scope})
    assert refused.status == 403
    assert refused.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}"'
    if method != "HEAD":
        assert refused.code == "INSUFFICIENT_SCOPE"
        assert any(scope in detail["message"] for detail in refused.error["details"])
    assert contents() == before
    allowed = call(method, path, {scope})
    assert allowed.status == {"POST": 201, "DELETE": 204}.get(method, 200), allowed


def test_scope_of_reading_says_nothing_about_what_is_hidden(user, other):
    order = Order.objects.create(user=other.user, item="Book", qty=1)
    limited = with_key(user.user, {"users:read"})
    for path in (f"/orders/{order.pk}", "/orders/999999999"):
        assert limited.get(path).code == "INSUFFICIENT_SCOPE"
        assert user.get(path).code == "NOT_FOUND"


def test_scopes_never_exceed_the_role(user, other):
    assert with_key(user.user, SCOPES).get(f"/users/{other.user.pk}").status == 404
    assert with_key(user.user, SCOPES).post("/users", BODY).code == "FORBIDDEN"
