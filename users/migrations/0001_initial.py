import config.api.representation.text
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
import users.models
from django.db import migrations, models

USER_TRIGGERS = [
    pgtrigger.compiler.Trigger(name='count_row_version', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.row_version = OLD.row_version + 1; RETURN NEW;', hash='7bdb8d252c03ccac059e533d11e2490b211275e3', operation='UPDATE', pgid='pgtrigger_count_row_version_8891a', table='users_user', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='keep_updated_at', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.updated_at = statement_timestamp(); RETURN NEW;', hash='d14160d69412caf8dc0d2ac95abc39bdbedd28cc', operation='UPDATE OF "name", "email", "role", "status", "email_verified_at", "external_id"', pgid='pgtrigger_keep_updated_at_ab6ba', table='users_user', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='index_new_words', sql=pgtrigger.compiler.UpsertTriggerSql(func="INSERT INTO users_userword (row_id, word) SELECT id, word FROM arrived CROSS JOIN LATERAL unnest(config_index_words(name || ' ' || email)) AS word; RETURN NULL;", hash='5fbbeb5c89723f4d2900e367a98c5a8e2157e9fd', level='STATEMENT', operation='INSERT', pgid='pgtrigger_index_new_words_85052', referencing='REFERENCING NEW TABLE AS arrived ', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='index_changed_words', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n                    IF (NEW.id, NEW.name, NEW.email) IS DISTINCT FROM (OLD.id, OLD.name, OLD.email) THEN\n                        DELETE FROM users_userword WHERE row_id = OLD.id;\n                        INSERT INTO users_userword (row_id, word) SELECT id, word FROM (SELECT NEW.*) AS changed CROSS JOIN LATERAL unnest(config_index_words(name || ' ' || email)) AS word;\n                    END IF;\n                    RETURN NULL;\n                ", hash='a028a3803c8012eb1ba3087fa78b294ccfef0916', operation='UPDATE OF "id", "name", "email"', pgid='pgtrigger_index_changed_words_09eef', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_gone_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM users_userword WHERE row_id IN (SELECT id FROM gone); RETURN NULL;', hash='9c585f37258f5ed971e7d776d12fd58ebd0e8fe9', level='STATEMENT', operation='DELETE', pgid='pgtrigger_remove_gone_words_c7adf', referencing='REFERENCING OLD TABLE AS gone ', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_all_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM users_userword; RETURN NULL;', hash='8bad518a17fb0781b441291009a5b9ca2679a2fb', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_remove_all_words_4da13', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'users_user', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object('role', role, 'status', status) AS part, sum(change) AS rows\n            FROM (SELECT id, role, status, 1 AS change FROM arrived WHERE removed_at IS NULL) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits, role, status HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='65ecaa52caaaab6de7e10d72d7d6267844ca4450', level='STATEMENT', operation='INSERT', pgid='pgtrigger_count_new_rows_dc779', referencing='REFERENCING NEW TABLE AS arrived ', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_gone_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'users_user', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object('role', role, 'status', status) AS part, sum(change) AS rows\n            FROM (SELECT id, role, status, -1 AS change FROM gone WHERE removed_at IS NULL) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits, role, status HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='dfc9aae1b86a68a4f4509083168055db56c25d77', level='STATEMENT', operation='DELETE', pgid='pgtrigger_count_gone_rows_1d8f0', referencing='REFERENCING OLD TABLE AS gone ', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_changed_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'users_user', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object('role', role, 'status', status) AS part, sum(change) AS rows\n            FROM (SELECT id, role, status, 1 AS change FROM arrived WHERE removed_at IS NULL UNION ALL SELECT id, role, status, -1 AS change FROM gone WHERE removed_at IS NULL) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits, role, status HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='f77c542359810eb73ef3a9474722c887e3afddaf', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_count_changed_rows_4f25d', referencing='REFERENCING OLD TABLE AS gone  NEW TABLE AS arrived ', table='users_user', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_no_rows', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_advisory_xact_lock(1919907699, -1); DELETE FROM config_rowcount WHERE relation = 'users_user'; RETURN NULL;", hash='71a925ca160c9c69ce8e9967875f27c534282b84', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_count_no_rows_b98c0', table='users_user', when='AFTER')),
]


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='UserWord',
            fields=[
                ('pk', models.CompositePrimaryKey('row_id', 'word', blank=True, editable=False, primary_key=True, serialize=False)),
                ('row_id', models.BigIntegerField()),
                ('word', models.TextField(db_collation='C')),
            ],
            options={
                'indexes': [models.Index(fields=['word', 'row_id'], name='userword_by_word')],
            },
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('row_version', models.BigIntegerField(db_default=1, editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('name', models.CharField(db_collation='C', max_length=200, validators=[config.api.representation.text.validate_line])),
                ('email', models.EmailField(db_collation='C', max_length=254, validators=[config.api.representation.text.validate_visible])),
                ('role', models.CharField(choices=[('admin', 'Admin'), ('support', 'Support'), ('user', 'User')], default='user', max_length=7)),
                ('status', models.CharField(choices=[('active', 'Active'), ('inactive', 'Inactive')], default='active', max_length=8)),
                ('email_verified_at', models.DateTimeField(editable=False, null=True)),
                ('email_is_trusted', models.BooleanField(db_default=True, editable=False)),
                ('external_id', models.CharField(blank=True, db_collation='C', max_length=255, null=True, validators=[config.api.representation.text.validate_line])),
                ('password', models.CharField(max_length=255)),
                ('removed_at', models.DateTimeField(editable=False, null=True)),
                ('credentials_ended_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('removed_at', None)), fields=['name', 'id'], name='users_name'), models.Index(condition=models.Q(('removed_at', None)), fields=['email', 'id'], name='users_email'), models.Index(condition=models.Q(('removed_at', None)), fields=['created_at', 'id'], name='users_created_at'), models.Index(condition=models.Q(('removed_at', None)), fields=['updated_at', 'id'], name='users_updated_at'), models.Index(condition=models.Q(('removed_at', None)), fields=['role', 'status', 'id'], name='users_role_status_id'), models.Index(condition=models.Q(('removed_at', None)), fields=['role', 'status', 'name', 'id'], name='users_role_status_name'), models.Index(condition=models.Q(('removed_at', None)), fields=['role', 'status', 'email', 'id'], name='users_role_status_email'), models.Index(condition=models.Q(('removed_at', None)), fields=['role', 'status', 'created_at', 'id'], name='users_role_status_created_at'), models.Index(condition=models.Q(('removed_at', None)), fields=['role', 'status', 'updated_at', 'id'], name='users_role_status_updated_at'), models.Index(condition=models.Q(users.models.IsForeignHash('password'), ('removed_at', None)), fields=['id'], name='users_foreign_hash')],
                'constraints': [models.UniqueConstraint(users.models.Folded('email'), condition=models.Q(('removed_at', None)), name='users_email_unique', violation_error_message='This email is taken.'), models.UniqueConstraint(condition=models.Q(('external_id', None), _negated=True), fields=('external_id',), name='users_external_id_unique'), models.CheckConstraint(condition=models.Q(('role__in', ['admin', 'support', 'user'])), name='users_role_known'), models.CheckConstraint(condition=models.Q(('status__in', ['active', 'inactive'])), name='users_status_known'), models.CheckConstraint(condition=models.Q(models.Q(('removed_at', None), models.Q(('name', ''), _negated=True), models.Q(('email', ''), _negated=True)), models.Q(('email', ''), ('external_id', None), ('name', ''), ('password', ''), ('removed_at__isnull', False), ('status', 'inactive')), _connector='OR'), name='users_named_or_removed')],
            },
        ),
        *(pgtrigger.migrations.AddTrigger('user', trigger) for trigger in USER_TRIGGERS),
    ]
