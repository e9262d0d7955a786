from typing import Any

from django.db import migrations

from config.postgresql.words import Words


def add_words(apps: Any, schema_editor: Any) -> None:
    posts = apps.get_model("posts", "Post")
    Words(posts, "posts_postword", ("title", "body")).backfill(schema_editor.connection)


class Migration(migrations.Migration):
    # Of posts that are there already, in batches: each is committed by itself. New ones have their words by triggers.
    atomic = False

    dependencies = [
        ("posts", "0008_words"),
    ]

    operations = [migrations.RunPython(add_words, migrations.RunPython.noop, elidable=True)]
