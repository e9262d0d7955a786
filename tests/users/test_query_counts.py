"""A list takes as many queries for twenty rows as for one."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import fast_path_only
from users.models import User


def users(owner, number):
    for row in range(number):
        User.objects.create(name="Row", email=f"row{User.objects.count()}-{row}@example.com", password="!")


def orders(owner, number):
    Order.objects.bulk_create(Order(user=owner, item="Book", qty=1) for _ in range(number))


def payments(owner, number):
    Payment.objects.bulk_create(Payment(user=owner, amount=1) for _ in range(number))


def posts(owner, number):
    for post in Post.objects.bulk_create(Post(user=owner, title="Title") for _ in range(number)):
        Comment.objects.bulk_create(Comment(post=post, user=owner, text="Text") for _ in range(4))


def comments(owner, number):
    post = Post.objects.first() or Post.objects.create(user=owner, title="Title")
    Comment.objects.bulk_create(Comment(post=post, user=owner, text="Text") for _ in range(number))


@pytest.fixture
def queries_of():
    def count(caller, path):
        # The first use of a key is written down, and no other within the minute.
        caller.get("/api/protected")
        with CaptureQueriesContext(connection) as captured:
            answer = caller.get(path)
        assert answer.status == 200
        return len(captured), len(answer.data)

    return count


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (users, "/users"),
        (orders, "/orders"),
        (orders, "/users/{owner}/orders"),
        (payments, "/payments"),
        (payments, "/users/{owner}/payments"),
        (posts, "/posts"),
        (posts, "/users/{owner}/posts"),
        (comments, "/posts/{post}/comments"),
    ],
)
def test_list_of_twenty_takes_as_many_queries_as_of_one(queries_of, admin, other, make, path):
    make(other.user, 1)
    post = Post.objects.first()
    path = path.format(owner=other.user.pk, post=post.pk if post else None)
    few, shown_few = queries_of(admin, f"{path}?limit=100")
    make(other.user, 19)
    many, shown_many = queries_of(admin, f"{path}?limit=100")
    assert shown_many == shown_few + 19
    assert many == few


@pytest.mark.parametrize("path", ["/posts", "/posts?cursor=", "/posts/{post}"])
def test_posts_are_read_with_their_comments_in_one_query(queries_of, other, path):
    """A second one would see the comments of another moment."""
    # The author, whose link to itself needs no look at the user.
    comments(other.user, 20)
    path = path.format(post=Post.objects.get().pk)
    with_comments, _ = queries_of(other, path)
    without, _ = queries_of(other, f"{path}{'&' if '?' in path else '?'}fields=id,title")
    assert with_comments == without


@fast_path_only
@pytest.mark.parametrize("query", ["page=1", "cursor=", "offset=1", "sort=name&order=desc&page=2&limit=1"])
def test_no_hash_of_a_password_leaves_the_database_with_a_list(admin, other, query):
    with CaptureQueriesContext(connection) as captured:
        assert admin.get(f"/users?{query}").status == 200
    # But with the credential, which changing the password ends.
    lists = [each["sql"] for each in captured if "digest" not in each["sql"]]
    assert lists
    assert not [sql for sql in lists if re.search(r"\bpassword\b", sql)]
