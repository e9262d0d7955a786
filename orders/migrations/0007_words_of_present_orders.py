from typing import Any

from django.db import migrations

from config.postgresql.words import Words


def add_words(apps: Any, schema_editor: Any) -> None:
    orders = apps.get_model("orders", "Order")
    Words(orders, "orders_orderword", ("item",)).backfill(schema_editor.connection)


class Migration(migrations.Migration):
    # Of orders that are there already, in batches: each is committed by itself. New ones have their words by triggers.
    atomic = False

    dependencies = [
        ("orders", "0006_words"),
    ]

    operations = [migrations.RunPython(add_words, migrations.RunPython.noop, elidable=True)]
