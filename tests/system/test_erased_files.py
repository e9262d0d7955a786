"""What a removed user has written is gone from the disk, too, once the tables are compacted; the WAL goes by itself."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from django.db import connection

from config.erasure.eraser import erase
from config.models import Event, WebhookDelivery
from tests.conftest import own_session, with_key
from tests.events.webhooks.conftest import deliver, subscribe
from tests.events.webhooks.receiver import Receiver

TABLES = """
SELECT string_agg(relname, ', ') FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
"""


def find_in_files(texts: dict[str, str]) -> set[str]:
    """Which of the texts a file of the server has, the WAL excepted."""
    with connection.cursor() as cursor:
        # It also writes what is changed, and deletes the files that were replaced.
        cursor.execute("CHECKPOINT")
        cursor.execute("SHOW data_directory")
        folder = Path(cursor.fetchone()[0])
    found = set()
    for file in folder.rglob("*"):
        if file.is_file() and "pg_wal" not in file.parts:
            content = file.read_bytes()
            found |= {name for name, text in texts.items() if text.encode() in content}
    return found


@own_session
@pytest.mark.django_db(transaction=True)
def test_no_file_has_a_text_of_a_removed_user(admin, make_user, other, settings):
    settings.LOCAL = True
    names = ("name", "email", "title", "comment", "url", "description", "request", "answer")
    texts = {name: f"{name}-{secrets.token_hex(8)}" for name in names}
    leaving = with_key(make_user(name=texts["name"], email=f"{texts['email']}@example.com"))
    sent = {"x_request_id": texts["request"]}
    # Of an administrator, who gets the id of the request and repeats it.
    staff, receiver = Receiver(), Receiver()
    with staff.running(), receiver.running():
        staff.answer = lambda number: (200, {}, staff.messages[-1][1] + texts["answer"].encode())
        subscribe(admin, staff, types=["post.created", "comment.removed", "user.updated"])
        url = f"http://127.0.0.1:{receiver.port}/{texts['url']}"
        subscribe(leaving, receiver, url=url, types=["comment.created"], description=texts["description"])
        own = f"/api/v2/users/{leaving.user.pk}"
        post = leaving.post(f"{own}/posts", {"title": texts["title"]}, **sent).data["id"]
        leaving.post(f"/api/v2/posts/{post}/comments", {"text": texts["comment"]}, idempotency_key="k", **sent)
        other.post(f"/api/v2/posts/{post}/comments", {"text": "Thanks"})
        # An event of somebody else's comment.
        leaving.delete(f"/api/v2/posts/{post}", **sent)
        leaving.patch(own, {"name": texts["name"][:-1] + "x"}, **sent)
        leaving.patch(own, {"name": texts["name"]}, **sent)
        again = leaving.post(f"{own}/posts", {"title": texts["title"]}, **sent).data["id"]
        leaving.post(f"/api/v2/posts/{again}/comments", {"text": texts["comment"]}, **sent)
        deliver()
    assert Event.objects.filter(type="comment.removed", user_id=other.user.pk, request_id=texts["request"]).exists()
    repeated = WebhookDelivery.objects.filter(webhook__user=admin.user).values_list("attempts", flat=True)
    assert [texts["request"] in str(attempts) for attempts in repeated] == [True] * 6
    assert find_in_files(texts) == {*texts}
    assert admin.delete(own).status == 204
    assert erase(rest=0) == 1
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        # With its statistics, which quote values.
        cursor.execute(f"VACUUM (FULL, ANALYZE) {cursor.fetchone()[0]}, pg_statistic")
    assert find_in_files(texts) == set()
