"""What is left behind a test that commits."""

import pytest
from django.core.management import call_command
from django.db import connection

from posts.models import Comment, Post
from tests.plugins.emptying import FILLED_BY_MIGRATE, MAX_BYTES
from users import services


def fetch_lengths() -> dict[str, int]:
    """How many rows each table has, where it has some."""
    lengths = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(only_existing=True, include_views=False):
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - a name of Django's
            ((lengths[table],),) = cursor.fetchall()
    return {table: length for table, length in lengths.items() if length}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("reset_sequences", [False, True])
@pytest.mark.parametrize("is_large", [False, True], ids=["a few rows", "many rows"])
def test_no_rows_are_left_but_those_of_migrations(is_large: bool, reset_sequences: bool) -> None:
    before = fetch_lengths()
    assert before.keys() == FILLED_BY_MIGRATE
    user = services.create(name="New", email="new@example.com", password="four plain words here")
    posts = Post.objects.bulk_create(
        Post(user=user, title="New", body="x" * 1_000) for _ in range(MAX_BYTES // 1_000 if is_large else 1)
    )
    # Of few rows, but with those of a table that has many.
    Comment.objects.create(post=posts[0], user=user, text="New")
    assert fetch_lengths().keys() > {*FILLED_BY_MIGRATE, "users_user", "posts_comment", "config_rowcount"}
    call_command("flush", interactive=False, verbosity=0, reset_sequences=reset_sequences)
    assert fetch_lengths() == before
