from django.db import migrations

UNLOGGED = """
ALTER TABLE config_readposition SET UNLOGGED;
-- Each update leaves room for the next one in the same page, which then needs no entry in the index.
ALTER TABLE config_readposition SET (fillfactor = 50);
"""


class Migration(migrations.Migration):
    # Nothing waits for the table, which nobody uses yet.
    atomic = False

    dependencies = [("config", "0013_replicas")]

    operations = [migrations.RunSQL(UNLOGGED, migrations.RunSQL.noop)]
