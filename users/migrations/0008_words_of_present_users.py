from typing import Any

from django.db import migrations

from config.postgresql.words import Words


def add_words(apps: Any, schema_editor: Any) -> None:
    users = apps.get_model("users", "User")
    Words(users, "users_userword", ("name", "email")).backfill(schema_editor.connection)


class Migration(migrations.Migration):
    # Of users that are there already, in batches: each is committed by itself. New ones have their words by triggers.
    atomic = False

    dependencies = [
        ("users", "0007_words"),
    ]

    operations = [migrations.RunPython(add_words, migrations.RunPython.noop, elidable=True)]
