from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY is no part of a transaction.
    atomic = False
    dependencies = [("orders", "0003_notes_of_present_orders")]
    operations = [AddIndexConcurrently("order", models.Index(fields=["note", "id"], name="orders_note"))]
