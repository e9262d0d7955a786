from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Puts the id into the index of a user's records, so that the latest are read from it.

    The new index is built beside the one that it replaces, while records are written.
    """

    # CREATE INDEX CONCURRENTLY is no part of a transaction.
    atomic = False

    dependencies = [
        ("config", "0010_answers_of_many"),
    ]

    operations = [
        # What is left, and is not valid, of an attempt that was cut short.
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS idempotency_records_of_user", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "idempotencyrecord", models.Index(fields=["user", "id"], name="idempotency_records_of_user")
        ),
        RemoveIndexConcurrently("idempotencyrecord", "idempotency_records_user"),
    ]
