from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

_COLUMNS = {
    "api_keys_name": ["name", "id"],
    "api_keys_created_at": ["created_at", "id"],
    "api_keys_user_name": ["user", "name", "id"],
    "api_keys_user_created_at": ["user", "created_at", "id"],
}


class Migration(migrations.Migration):
    """Indexes that are built while keys are used: each request with a key may write to its row."""

    atomic = False
    dependencies = [("accounts", "0006_key_search")]
    operations = [
        operation
        for name, columns in _COLUMNS.items()
        for operation in (
            # What is left, and is not valid, of an attempt that was cut short.
            migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", migrations.RunSQL.noop),
            AddIndexConcurrently("apikey", models.Index(fields=columns, name=name)),
        )
    ]
