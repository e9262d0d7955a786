from django.db import migrations

# For the toolkit's models, which cannot declare further indexes.
INDEXES = """
CREATE INDEX access_tokens_user ON oauth2_provider_accesstoken (user_id, id);
CREATE INDEX refresh_tokens_user ON oauth2_provider_refreshtoken (user_id, id);
CREATE INDEX grants_user ON oauth2_provider_grant (user_id, id);
"""


class Migration(migrations.Migration):
    """Indexes from which the latest tokens of one user are read."""

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('oauth2_provider', '0022_refreshtoken_token_family_index'),
    ]

    operations = [migrations.RunSQL(INDEXES)]
