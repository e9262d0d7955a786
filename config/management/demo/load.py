"""The demo data that `make run` fills an empty database with."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db import transaction

from config import audit
from config.management.demo import rows
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import User

USER_COUNT = 250


def load_demo_data() -> None:
    """Fills an empty database: users, three orders each, a payment for every second order, and the threads."""
    with audit.rows_alone(), transaction.atomic():
        times = (rows.compute_signup_time(number, USER_COUNT) for number in range(USER_COUNT))
        users = User.objects.bulk_create(User(**rows.build_user(*each)) for each in enumerate(times, 1))
        audit.record_write("user.created", count=len(users))
        _create_for_each(Order, rows.build_order, users * 3)
        _create_for_each(Payment, rows.build_payment, users + users[::2])
        threads = sorted(_build_threads(users), key=lambda thread: thread[0].created_at)
        Post.objects.bulk_create([post for post, _ in threads])
        comments = [comment for _, comments in threads for comment in comments]
        Comment.objects.bulk_create(sorted(comments, key=attrgetter("created_at")))


def _create_for_each(model: Any, build: Callable[[int, datetime], rows.Row], users: Sequence[User]) -> None:
    """Creates a row for each user, in the order of time."""
    created = [
        model(user=user, **build(number, rows.compute_later_time(user.created_at, number)))
        for number, user in enumerate(users)
    ]
    model.objects.bulk_create(sorted(created, key=attrgetter("created_at")))


def _build_threads(users: Sequence[User]) -> Iterator[tuple[Post, list[Comment]]]:
    """Each post, whose author speaks its language, with the comments of other speakers."""
    count = len(rows.CULTURES)
    # The first user has the number 1.
    speakers = {each.language: users[(index - 1) % count :: count] for index, each in enumerate(rows.CULTURES)}
    for number, thread in enumerate(rows.THREADS):
        languages = list(speakers) if thread.is_multilingual else [thread.language] * len(thread.comments)
        authors = speakers[thread.language]
        author = authors[number % len(authors)]
        time = rows.compute_later_time(author.created_at, number)
        post = Post(user=author, title=thread.title, body=thread.body, created_at=time, updated_at=time)
        comments = []
        for index, (text, language) in enumerate(zip(thread.comments, languages, strict=True), 1):
            authors = speakers[language]
            user = authors[(number + index) % len(authors)]
            time = max(time, user.created_at) + timedelta(minutes=3 + rows.scatter(number + index, 429_497, 300))
            time = min(time, rows.END)
            comments.append(Comment(post=post, user=user, text=text, created_at=time, updated_at=time))
        yield post, comments
