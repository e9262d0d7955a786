from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY is no part of a transaction.
    atomic = False

    dependencies = [
        ("config", "0009_words"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotencyrecord",
            name="owner_ids",
            field=ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        AddIndexConcurrently(
            model_name="idempotencyrecord",
            index=GinIndex(
                condition=models.Q(("owner_ids", None), _negated=True),
                fields=["owner_ids"],
                name="idempotency_records_owners",
            ),
        ),
    ]
