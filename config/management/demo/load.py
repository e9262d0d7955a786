"""The demo data that `make run` fills an empty database with."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import attrgetter

from django.db import transaction

from config import audit
from config.management.demo import rows
from config.management.demo.names import CULTURES, build_person
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from users.models import Role, User

USER_COUNT = 250
# With the proportions of a million users, a set this small would have no administrator.
_STAFF = {3: Role.ADMIN, 8: Role.SUPPORT, 30: Role.SUPPORT, 57: Role.SUPPORT, 101: Role.ADMIN}


def load_demo_data() -> None:
    """Fills an empty database: users, three orders each, a payment for every second order, and the threads."""
    with audit.rows_alone(), transaction.atomic():
        users = User.objects.bulk_create(User(**row._asdict()) for row in _build_users())
        audit.record_write("user.created", count=len(users))
        Order.objects.bulk_create(sorted(_build_orders(users), key=attrgetter("created_at")))
        Payment.objects.bulk_create(sorted(_build_payments(users), key=attrgetter("created_at")))
        threads = sorted(_build_threads(users), key=lambda thread: thread[0].created_at)
        Post.objects.bulk_create([post for post, _ in threads])
        comments = [comment for _, comments in threads for comment in comments]
        Comment.objects.bulk_create(sorted(comments, key=attrgetter("created_at")))


def _build_users() -> Iterator[rows.DemoUser]:
    for number in range(1, USER_COUNT + 1):
        row = rows.build_user(number, rows.compute_signup_time(number - 1, USER_COUNT))
        if number in _STAFF:
            role = _STAFF[number].value
            row = row._replace(role=role, status=rows.choose_status(number, role))
        yield row


def _build_orders(users: Sequence[User]) -> Iterator[Order]:
    for number in range(3 * len(users)):
        user = users[number // 3]
        row = rows.build_order(number, rows.compute_later_time(user.created_at, number, 289_573))
        yield Order(user=user, **row._asdict())


def _build_payments(users: Sequence[User]) -> Iterator[Payment]:
    for number in range(3 * len(users) // 2):
        user = users[number * 2 // 3]
        created_at = rows.compute_later_time(user.created_at, number, 156_007)
        yield Payment(user=user, amount=rows.build_amount(number), created_at=created_at)


def _build_threads(users: Sequence[User]) -> Iterator[tuple[Post, list[Comment]]]:
    """Each post, whose author speaks its language, with the comments of other speakers."""
    speakers = defaultdict(list)
    for number, user in enumerate(users, 1):
        speakers[build_person(number).language].append(user)
    for number, thread in enumerate(rows.THREADS):
        authors = speakers[thread.language]
        author = authors[number % len(authors)]
        created_at = rows.compute_later_time(author.created_at, number + 1, 619_979)
        post = Post(user=author, title=thread.title, body=thread.body, created_at=created_at, updated_at=created_at)
        groups = [speakers[culture.language] for culture in CULTURES] if thread.is_multilingual else [authors]
        yield post, list(_build_comments(post, thread.comments, groups, number))


def _build_comments(
    post: Post, texts: Sequence[str], groups: Sequence[Sequence[User]], number: int
) -> Iterator[Comment]:
    """The comments of a post, whose authors come from the groups in turn."""
    time = post.created_at
    for index, text in enumerate(texts):
        group = groups[index % len(groups)]
        author = group[(number + index + 1) % len(group)]
        time = max(time, author.created_at) + timedelta(minutes=3 + rows.scatter(number + index, 429_497, 300))
        time = min(time, rows.END)
        yield Comment(post=post, user=author, text=text, created_at=time, updated_at=time)
