import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models

PAYMENT_TRIGGERS = [
    pgtrigger.compiler.Trigger(name='count_row_version', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.row_version = OLD.row_version + 1; RETURN NEW;', hash='0bd5dc0423e100b38e16bf490ec8d7197a17df8b', operation='UPDATE', pgid='pgtrigger_count_row_version_deea2', table='payments_payment', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='count_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'payments_payment', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='e7cb2ab15ea8f13c5b8707bf67fe60f38b82c9f8', level='STATEMENT', operation='INSERT', pgid='pgtrigger_count_new_rows_825cd', referencing='REFERENCING NEW TABLE AS arrived ', table='payments_payment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_gone_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'payments_payment', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='fb526f028f1c75d78527f669363d57c7cc770668', level='STATEMENT', operation='DELETE', pgid='pgtrigger_count_gone_rows_4480c', referencing='REFERENCING OLD TABLE AS gone ', table='payments_payment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_changed_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'payments_payment', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true UNION ALL SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='779c2d77909baa2b7ac85c32561a56f43ee4f148', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_count_changed_rows_06803', referencing='REFERENCING OLD TABLE AS gone  NEW TABLE AS arrived ', table='payments_payment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_no_rows', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_advisory_xact_lock(1919907699, -1); DELETE FROM config_rowcount WHERE relation = 'payments_payment'; RETURN NULL;", hash='492133acdce87db788db0708df6ac7163ab0a0ef', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_count_no_rows_5ebab', table='payments_payment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='tell_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare="DECLARE actor jsonb := nullif(current_setting('events.actor', true), ''); actors jsonb := nullif(current_setting('events.payments_payment', true), '');", func="\n            INSERT INTO config_event (position, type, resource_id, user_id, changed, actor_id, credential, request_id)\n            SELECT (SELECT greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)), 'payment.created', id, user_id, NULL, (by ->> 0)::bigint, by ->> 1, by ->> 2\n            FROM arrived CROSS JOIN LATERAL (SELECT coalesce(actors -> id::text, actor) AS by) AS who\n            ORDER BY id;\n            RETURN NULL;\n        ", hash='18ef737c38b4cc7a6c720184c7b66ed29815d1e7', level='STATEMENT', operation='INSERT', pgid='pgtrigger_tell_new_rows_ab0ee', referencing='REFERENCING NEW TABLE AS arrived ', table='payments_payment', when='AFTER')),
]


class Migration(migrations.Migration):

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('row_version', models.BigIntegerField(db_default=1, editable=False)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=12)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['user', 'id'], name='payments_user'), models.Index(fields=['amount', 'id'], name='payments_amount'), models.Index(fields=['created_at', 'id'], name='payments_created_at'), models.Index(fields=['user', 'amount', 'id'], name='payments_user_amount'), models.Index(fields=['user', 'created_at', 'id'], name='payments_user_created_at')],
                'constraints': [models.CheckConstraint(condition=models.Q(('amount__range', (Decimal('0.01'), Decimal('9999999999.99')))), name='payments_amount_range')],
                'triggers': PAYMENT_TRIGGERS,
            },
        ),
    ]
