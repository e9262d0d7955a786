"""Many requests with one key: one effect, one answer, and nobody waits."""

import time
from functools import partial

import psycopg

from config.models import IdempotencyRecord
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import with_key

CLIENTS = 50
ROUNDS = 5


def test_of_many_clients_with_one_key_one_pays_and_all_get_its_answer(at_once, make_user):
    caller = with_key(make_user())
    answers = at_once([partial(caller.post, "/payments", {"amount": 5}, idempotency_key="k")] * CLIENTS)
    assert {answer.status for answer in answers} <= {201, 409}
    created = [answer for answer in answers if answer.status == 201]
    assert len({(answer.response.content, answer.headers["Location"]) for answer in created}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in created) == 1
    assert {answer.code for answer in answers if answer.status == 409} <= {"IDEMPOTENCY_IN_PROGRESS"}
    assert Payment.objects.count() == 1


def test_answers_stored_beside_a_removal_go_with_the_user(at_once, make_user):
    admin = with_key(make_user("admin"))
    for _ in range(ROUNDS):
        leaving = with_key(make_user())
        answers = at_once(
            [
                *(partial(leaving.post, "/payments", {"amount": 5}, idempotency_key=key) for key in "ab"),
                partial(admin.post, f"/users/{leaving.user.pk}/posts", {"title": "T"}, idempotency_key="k"),
                partial(admin.delete, f"/users/{leaving.user.pk}"),
            ]
        )
        assert answers[-1].status == 204
        assert {answer.status for answer in answers[:-1]} <= {201, 401, 404}
        assert not IdempotencyRecord.objects.exists()


def test_new_key_waits_for_whoever_holds_the_user_and_a_seen_one_does_not(at_once, elsewhere, make_user):
    caller = with_key(make_user())
    pay = partial(caller.post, "/payments", {"amount": 5})
    assert pay(idempotency_key="seen").status == 201
    elsewhere.execute("SELECT FROM users_user WHERE id = %s FOR UPDATE", [caller.user.pk])
    assert pay(idempotency_key="seen").headers["Idempotent-Replayed"] == "true"

    def let_go():
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%users_user%KEY SHARE%'"
        with psycopg.connect(elsewhere.info.dsn, autocommit=True) as watching:
            while not watching.execute(waiting).fetchall():
                time.sleep(0.01)
        assert Payment.objects.count() == 1
        elsewhere.commit()

    answer, _ = at_once([partial(pay, idempotency_key="new"), let_go])
    assert (answer.status, Payment.objects.count()) == (201, 2)


def test_victim_of_a_deadlock_takes_its_key_again_and_has_one_effect(at_once, elsewhere, make_user):
    caller = with_key(make_user())
    post = Post.objects.create(user=make_user(), title="T")
    # The request is the first to look for a deadlock, and so the one that ends.
    elsewhere.execute("SET deadlock_timeout = '20s'")
    elsewhere.execute("SELECT FROM posts_post WHERE id = %s FOR UPDATE", [post.pk])

    def cross():
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%posts_post%FOR NO KEY%'"
        with psycopg.connect(elsewhere.info.dsn, autocommit=True) as watching:
            while not watching.execute(waiting).fetchall():
                time.sleep(0.01)
        # The request holds its user, and gives it up only when it ends.
        elsewhere.execute("SELECT FROM users_user WHERE id = %s FOR UPDATE", [caller.user.pk])
        elsewhere.commit()

    comment = partial(caller.post, f"/posts/{post.pk}/comments", {"text": "x"}, idempotency_key="k")
    answer, _ = at_once([comment, cross])
    assert (answer.status, answer.headers.get("Idempotent-Replayed")) == (201, None)
    assert comment().headers["Idempotent-Replayed"] == "true"
    assert (Comment.objects.count(), IdempotencyRecord.objects.count()) == (1, 1)
