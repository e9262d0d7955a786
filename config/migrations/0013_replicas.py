from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("config", "0012_saved_exports")]

    operations = [
        migrations.CreateModel(
            name="ReadPosition",
            fields=[
                ("user_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("replica", models.TextField(db_collation="C")),
                ("timeline", models.CharField(db_collation="C", max_length=8)),
                ("position", models.BigIntegerField()),
                ("waited_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Timeline",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("name", models.TextField(db_collation="C")),
            ],
        ),
    ]
