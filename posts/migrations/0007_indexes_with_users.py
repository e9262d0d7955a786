from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

# Their keys stay; the user of each row is added, which only a new index can have.
INDEXES = (
    ("post", "posts_title", ["title", "id"]),
    ("post", "posts_created_at", ["created_at", "id"]),
    ("post", "posts_updated_at", ["updated_at", "id"]),
    ("comment", "comments_post", ["post", "id"]),
    ("comment", "comments_post_created_at", ["post", "created_at", "id"]),
    ("comment", "comments_post_updated_at", ["post", "updated_at", "id"]),
)


def build_operations() -> list[Any]:
    """Builds each index beside the one that it replaces: nobody waits for it, and no list is without."""
    operations: list[Any] = []
    for model, name, fields in INDEXES:
        replaced = f"{name}_keys"
        index = models.Index(fields=fields, include=["user"], name=name)
        operations += [
            migrations.RenameIndex(model, new_name=replaced, old_name=name),
            AddIndexConcurrently(model, index),
            RemoveIndexConcurrently(model, replaced),
        ]
    return operations


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY is no part of a transaction.
    atomic = False

    dependencies = [
        ("posts", "0006_removed_authors"),
    ]

    operations = build_operations()
