import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("config", "0011_records_of_users"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedExport",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("requested_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("what", models.CharField(max_length=100)),
                ("query", models.TextField(blank=True)),
                ("format", models.CharField(max_length=10)),
                ("total", models.BigIntegerField(null=True)),
                ("rows", models.BigIntegerField(db_default=0, default=0)),
                ("last_id", models.BigIntegerField(db_default=0, default=0)),
                ("finished_at", models.DateTimeField(null=True)),
                ("failure", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("claimed_until", models.DateTimeField(db_default=Now())),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["id"], name="saved_exports_unfinished"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedExportPart",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.IntegerField()),
                ("ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("content", models.BinaryField()),
                (
                    "export",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="config.savedexport",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(fields=("export", "number"), name="saved_export_parts_once"),
                ],
            },
        ),
    ]
