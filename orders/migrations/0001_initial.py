import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

ORDER_TRIGGERS = [
    pgtrigger.compiler.Trigger(name='count_row_version', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.row_version = OLD.row_version + 1; RETURN NEW;', hash='db261d1d7b686909e5154b12e4082d436c5465b1', operation='UPDATE', pgid='pgtrigger_count_row_version_5cb12', table='orders_order', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='index_new_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO orders_orderword (row_id, word) SELECT id, word FROM arrived CROSS JOIN LATERAL unnest(config_index_words(item)) AS word; RETURN NULL;', hash='79cce105466e22aff5fcb1b6c16e3cffeafc4523', level='STATEMENT', operation='INSERT', pgid='pgtrigger_index_new_words_0aa0a', referencing='REFERENCING NEW TABLE AS arrived ', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='index_changed_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n                    IF (NEW.id, NEW.item) IS DISTINCT FROM (OLD.id, OLD.item) THEN\n                        DELETE FROM orders_orderword WHERE row_id = OLD.id;\n                        INSERT INTO orders_orderword (row_id, word) SELECT id, word FROM (SELECT NEW.*) AS changed CROSS JOIN LATERAL unnest(config_index_words(item)) AS word;\n                    END IF;\n                    RETURN NULL;\n                ', hash='73c48d6c3aed68e6a671500a6189bd1b2fa93d89', operation='UPDATE OF "id", "item"', pgid='pgtrigger_index_changed_words_434bd', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_gone_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM orders_orderword WHERE row_id IN (SELECT id FROM gone); RETURN NULL;', hash='6a6b038f05a4eec91373bdd8a867f09157d5e860', level='STATEMENT', operation='DELETE', pgid='pgtrigger_remove_gone_words_4da2a', referencing='REFERENCING OLD TABLE AS gone ', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_all_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM orders_orderword; RETURN NULL;', hash='1aff75784e96e9c6d8b85a8a0338426c7647e3ee', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_remove_all_words_6f6c2', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'orders_order', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='740508fe9993d27517a24420d009a55217d1e61f', level='STATEMENT', operation='INSERT', pgid='pgtrigger_count_new_rows_8a9a7', referencing='REFERENCING NEW TABLE AS arrived ', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_gone_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'orders_order', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='565058f5a30cebc5a8259fb0cc677b58ff0248e2', level='STATEMENT', operation='DELETE', pgid='pgtrigger_count_gone_rows_f701d', referencing='REFERENCING OLD TABLE AS gone ', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_changed_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'orders_order', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true UNION ALL SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='65b911066c439738d7fa9cf2930cec2edc49877c', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_count_changed_rows_428fe', referencing='REFERENCING OLD TABLE AS gone  NEW TABLE AS arrived ', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_no_rows', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_advisory_xact_lock(1919907699, -1); DELETE FROM config_rowcount WHERE relation = 'orders_order'; RETURN NULL;", hash='f011376a1dcb10db9b0a6be9c29bedcbcc9e30c2', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_count_no_rows_07683', table='orders_order', when='AFTER')),
    pgtrigger.compiler.Trigger(name='tell_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare="DECLARE actor jsonb := nullif(current_setting('events.actor', true), ''); actors jsonb := nullif(current_setting('events.orders_order', true), '');", func="\n            INSERT INTO config_event (position, type, resource_id, user_id, changed, actor_id, credential, request_id)\n            SELECT (SELECT greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)), 'order.created', id, user_id, NULL, (by ->> 0)::bigint, by ->> 1, by ->> 2\n            FROM arrived CROSS JOIN LATERAL (SELECT coalesce(actors -> id::text, actor) AS by) AS who\n            ORDER BY id;\n            RETURN NULL;\n        ", hash='cca71287fa887095389c75557f6cadc83e612d3c', level='STATEMENT', operation='INSERT', pgid='pgtrigger_tell_new_rows_a4c2c', referencing='REFERENCING NEW TABLE AS arrived ', table='orders_order', when='AFTER')),
]


class Migration(migrations.Migration):

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name='OrderWord',
            fields=[
                ('pk', models.CompositePrimaryKey('row_id', 'word', blank=True, editable=False, primary_key=True, serialize=False)),
                ('row_id', models.BigIntegerField()),
                ('word', models.TextField(db_collation='C')),
            ],
            options={
                'indexes': [models.Index(fields=['word', 'row_id'], name='orderword_by_word')],
            },
        ),
        migrations.CreateModel(
            name='Order',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('row_version', models.BigIntegerField(db_default=1, editable=False)),
                ('item', models.CharField(db_collation='C', max_length=200)),
                ('qty', models.IntegerField()),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='orders', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['user', 'id'], name='orders_user'), models.Index(fields=['item', 'id'], name='orders_item'), models.Index(fields=['qty', 'id'], name='orders_qty'), models.Index(fields=['created_at', 'id'], name='orders_created_at'), models.Index(fields=['user', 'item', 'id'], name='orders_user_item'), models.Index(fields=['user', 'qty', 'id'], name='orders_user_qty'), models.Index(fields=['user', 'created_at', 'id'], name='orders_user_created_at')],
                'constraints': [models.CheckConstraint(condition=models.Q(('item', ''), _negated=True), name='orders_item_given'), models.CheckConstraint(condition=models.Q(('qty__range', (1, 1000000))), name='orders_qty_range')],
                'triggers': ORDER_TRIGGERS,
            },
        ),
    ]
