from typing import Any

from django.db import migrations

ROWS = 1_000


def fill(apps: Any, schema_editor: Any) -> None:
    orders = apps.get_model("orders", "Order").objects
    last = orders.order_by("-id").values_list("id", flat=True).first() or 0
    for start in range(0, last + 1, ROWS):
        orders.filter(id__range=(start, start + ROWS - 1), note="").update(note="From before")


class Migration(migrations.Migration):
    # Each batch is committed by itself.
    atomic = False
    dependencies = [("orders", "0002_order_note")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
