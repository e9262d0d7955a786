"""Each change of a user or of a resource is one event of its transaction, by whichever door; nothing else is."""

from functools import partial

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from config.erasure import eraser
from config.http.media_types import NDJSON
from config.models import Event
from orders.models import Order
from posts.models import Comment, Post
from tests.conftest import fast_path_only, with_bearer_of, with_key
from tests.users.test_admin_import import choose, confirm, lines
from users.models import User


def get_told():
    """What happened to which resource, whose it is, what was changed, and who did it by which kind of credential."""
    found = Event.objects.order_by("id")
    columns = ("type", "resource_id", "user_id", "changed", "actor_id", "credential")
    return [*found.values_list(*columns)]


@pytest.fixture
def forget(db):
    """Leaves out what the test has prepared."""
    return lambda: Event.objects.all().delete()


def test_life_of_a_post_and_its_comments(user, other, forget):
    forget()
    own, others = user.user.pk, other.user.pk
    post = user.post(f"/api/v2/users/{own}/posts", {"title": "t"}, x_request_id="first").data["id"]
    comment = other.post(f"/api/v2/posts/{post}/comments", {"text": "c"}).data["id"]
    user.patch(f"/api/v2/posts/{post}", {"title": "u", "body": ""})
    for text in ("d", "d", "d" * 6_000):
        other.put(f"/api/v2/comments/{comment}", {"text": text})
    user.delete(f"/api/v2/posts/{post}?dry_run=true")
    user.delete(f"/api/v2/posts/{post}")
    assert get_told() == [
        ("post.created", post, own, None, own, "api_key"),
        ("comment.created", comment, others, None, others, "api_key"),
        ("post.updated", post, own, ["title"], own, "api_key"),
        ("comment.updated", comment, others, ["text"], others, "api_key"),
        ("comment.removed", comment, others, None, own, "api_key"),
        ("post.removed", post, own, None, own, "api_key"),
    ]
    assert Event.objects.order_by("id").first().request_id == "first"


@pytest.mark.django_db(transaction=True)
def test_life_of_a_user(make_user, forget):
    chief = make_user("admin")
    caller, by = with_bearer_of(chief), (chief.pk, "jwt")
    forget()
    made = caller.post("/api/v2/users", {"name": "n", "email": "n@example.com"}).data["id"]
    path = f"/api/v2/users/{made}"
    caller.patch(path, {"name": "o", "role": "support", "password": "four words in a row"})
    caller.patch(path, {"name": "o", "email": "not one"})
    made_user = User.objects.get(pk=made)
    post = Post.objects.create(user=made_user, title="t")
    Comment.objects.create(user=chief, post=post, text="of another one")
    elsewhere = Post.objects.create(user=chief, title="t")
    comment = Comment.objects.create(user=made_user, post=elsewhere, text="elsewhere")
    order = Order.objects.create(user=made_user, item="i", qty=1)
    Event.objects.filter(user_id=chief.pk).delete()
    caller.delete(path, x_request_id="removal-of-n")
    assert Event.objects.filter(request_id="removal-of-n", user_id=made).exists()
    assert eraser.erase(rest=0) == 1
    assert not Event.objects.filter(user_id=made).exclude(request_id=None).exists()
    assert get_told() == [
        ("user.created", made, made, None, *by),
        ("user.updated", made, made, ["name", "role"], *by),
        ("post.created", post.pk, made, None, None, None),
        ("comment.created", comment.pk, made, None, None, None),
        ("order.created", order.pk, made, None, None, None),
        ("user.removed", made, made, None, *by),
    ]


@pytest.mark.django_db(transaction=True)
def test_ids_of_requests_by_a_removed_user_go_from_the_events_of_others(admin, make_user, user, forget):
    leaving = with_key(make_user("admin"))
    forget()
    order = {"item": "i", "qty": 1, "user_id": user.user.pk}
    for caller, name in ((leaving, "of-lea"), (admin, "of-ada")):
        caller.post("/api/v2/orders", order, x_request_id=name)
    admin.delete(f"/api/v2/users/{leaving.user.pk}")
    with CaptureQueriesContext(connection) as queries:
        assert eraser.erase(rest=0) == 1
    told = Event.objects.filter(type="order.created").order_by("id").values_list("actor_id", "request_id")
    assert [*told] == [(leaving.user.pk, None), (admin.user.pk, "of-ada")]
    # However many events there are.
    looks = {query["sql"] for query in queries if query["sql"].startswith('SELECT "config_event"')}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plans = [str(cursor.execute(f"EXPLAIN {look}").fetchall()) for look in looks]
    assert sorted("_actor_id_" in plan or "_user_id_" in plan for plan in plans) == [True, True]


def test_what_is_refused_tried_or_replayed_gives_none(user, forget):
    forget()
    own = user.user.pk
    body, key = {"amount": "1.00"}, {"idempotency_key": "k"}
    made = [user.post("/api/v2/payments", body, **key) for _ in range(2)]
    assert [answer.status for answer in made] == [201, 201]
    assert user.post("/api/v2/payments", {"amount": "2.00"}, **key).status == 422
    assert user.post("/api/v2/payments", {"amount": "0"}, idempotency_key="l").status == 400
    assert user.post("/api/v2/orders?dry_run=true", {"item": "i", "qty": 1}).status == 200
    assert get_told() == [("payment.created", made[0].data["id"], own, None, own, "api_key")]


def test_many_at_once(user, forget):
    forget()
    raw = b"".join(b'{"item": "i%d", "qty": 1}\n' % number for number in range(3))
    user("POST", "/api/v2/orders", raw=raw, content_type=NDJSON, x_request_id="many")
    own = user.user.pk
    ids = Order.objects.order_by("id").values_list("id", flat=True)
    assert get_told() == [("order.created", each, own, None, own, "api_key") for each in ids]
    assert {*Event.objects.values_list("request_id", flat=True)} == {"many"}


def test_pages_of_the_admin(pages, chief, make_user, forget):
    made = make_user()
    forget()
    confirm(pages, choose(pages, lines(2)))
    imported = User.objects.order_by("-id")[:2]
    form = {"name": "N", "email": made.email, "role": made.role, "status": made.status}
    pages.post(f"/admin/users/user/{made.pk}/change/", form)
    pages.post(f"/admin/users/user/{made.pk}/delete/", {"post": "yes"})
    by = (chief.pk, "session")
    assert get_told() == [
        *(("user.created", each.pk, each.pk, None, *by) for each in reversed(imported)),
        ("user.updated", made.pk, made.pk, ["name"], *by),
        ("user.removed", made.pk, made.pk, None, *by),
    ]


@pytest.mark.django_db(transaction=True)
def test_command_line_and_copy_are_the_system(capsys):
    call_command("seed", users=3, orders_per_user=2)
    told = get_told()
    users, orders = (model.objects.order_by("id").values_list("id", flat=True) for model in (User, Order))
    assert {row[0::4] for row in told} == {("user.created", None), ("order.created", None)}
    assert [row[1] for row in told] == [*users, *orders]


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_gives_none(user):
    Event.objects.all().delete()
    with transaction.atomic():
        Order.objects.create(user=user.user, item="i", qty=1)
        transaction.set_rollback(True)
    assert get_told() == []


@fast_path_only
@pytest.mark.django_db(transaction=True)
def test_requests_side_by_side_are_each_told(run_together, make_user):
    kinds = {"api_key": with_key, "jwt": with_bearer_of}
    callers = [(kind, build(make_user())) for kind, build in [*kinds.items()] * 15]
    Event.objects.all().delete()

    def send(number, kind, caller):
        path, body, key = requests[number % 3]
        made = caller.post(f"/api/v2/{path}", body, x_request_id=f"r{number}", **key)
        return made.data["id"], caller.user.pk, kind, f"r{number}"

    key, order = {"idempotency_key": "k"}, {"item": "i", "qty": 1}
    requests = [("payments", {"amount": "1.00"}, key), ("orders", order, key), ("orders", order, {})]
    added = run_together(*(partial(send, number, *caller) for number, caller in enumerate(callers)))
    told = Event.objects.values_list("resource_id", "actor_id", "credential", "request_id")
    assert sorted(told) == sorted(added)
