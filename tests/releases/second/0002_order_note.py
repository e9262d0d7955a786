from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orders", "0001_initial")]
    operations = [migrations.AddField("order", "note", models.CharField(db_default="", max_length=100))]
