from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# Of the toolkit: its models cannot declare further indexes.
_TOKENS = {
    "access_tokens_user": "oauth2_provider_accesstoken",
    "refresh_tokens_user": "oauth2_provider_refreshtoken",
    "grants_user": "oauth2_provider_grant",
}


class Migration(migrations.Migration):
    """Indexes from which the latest tokens and applications of one user are read, built while tokens are given."""

    # CREATE INDEX CONCURRENTLY is no part of a transaction.
    atomic = False
    dependencies = [("accounts", "0007_key_sorts"), ("oauth2_provider", "0022_refreshtoken_token_family_index")]
    operations = [
        *(
            operation
            for name, table in _TOKENS.items()
            for operation in (
                # What is left, and is not valid, of an attempt that was cut short.
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", migrations.RunSQL.noop),
                migrations.RunSQL(
                    f"CREATE INDEX CONCURRENTLY {name} ON {table} (user_id, id)",
                    f"DROP INDEX CONCURRENTLY {name}",
                ),
            )
        ),
        AddIndexConcurrently("application", models.Index(fields=["owner", "id"], name="applications_owner")),
    ]
