import config.api.representation.text
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

POST_TRIGGERS = [
    pgtrigger.compiler.Trigger(name='count_row_version', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n        IF pg_trigger_depth() = 1 THEN\n            NEW.comments_count = OLD.comments_count;\n        END IF;\n        NEW.row_version = OLD.row_version + greatest(1, OLD.comments_count - NEW.comments_count);\n        RETURN NEW;\n    ', hash='8e488a748e6c6136df809155af6f99fe0de252bf', operation='UPDATE', pgid='pgtrigger_count_row_version_e879d', table='posts_post', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='keep_updated_at', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.updated_at = statement_timestamp(); RETURN NEW;', hash='19a22bf5bd18478ac6458f2fd6be6da7dbd020d8', operation='UPDATE OF "title", "body"', pgid='pgtrigger_keep_updated_at_3b1d1', table='posts_post', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='index_new_words', sql=pgtrigger.compiler.UpsertTriggerSql(func="INSERT INTO posts_postword (row_id, word) SELECT id, word FROM arrived CROSS JOIN LATERAL unnest(config_index_words(title || ' ' || body)) AS word; RETURN NULL;", hash='3f10e3d413c3d53d0a1c4a2b497261567aff9c53', level='STATEMENT', operation='INSERT', pgid='pgtrigger_index_new_words_c7896', referencing='REFERENCING NEW TABLE AS arrived ', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='index_changed_words', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n                    IF (NEW.id, NEW.title, NEW.body) IS DISTINCT FROM (OLD.id, OLD.title, OLD.body) THEN\n                        DELETE FROM posts_postword WHERE row_id = OLD.id;\n                        INSERT INTO posts_postword (row_id, word) SELECT id, word FROM (SELECT NEW.*) AS changed CROSS JOIN LATERAL unnest(config_index_words(title || ' ' || body)) AS word;\n                    END IF;\n                    RETURN NULL;\n                ", hash='e0db335da00734dfca4227b85f13dbcc9ad09fae', operation='UPDATE OF "id", "title", "body"', pgid='pgtrigger_index_changed_words_c227c', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_gone_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM posts_postword WHERE row_id IN (SELECT id FROM gone); RETURN NULL;', hash='43d18cf5633bd445396c0a83184db0ebd32ea6d5', level='STATEMENT', operation='DELETE', pgid='pgtrigger_remove_gone_words_47b1d', referencing='REFERENCING OLD TABLE AS gone ', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='remove_all_words', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM posts_postword; RETURN NULL;', hash='cba959f9e99ec392b9a3786f8d5b3db2b7456c1f', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_remove_all_words_95412', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_new_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'posts_post', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='c30f9f3e68bc528ee3cc9c43e34db4dd699f173f', level='STATEMENT', operation='INSERT', pgid='pgtrigger_count_new_rows_1882c', referencing='REFERENCING NEW TABLE AS arrived ', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_gone_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'posts_post', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='7b065664d9bb1b47d068ce50e58fd951a94ef525', level='STATEMENT', operation='DELETE', pgid='pgtrigger_count_gone_rows_c93b7', referencing='REFERENCING OLD TABLE AS gone ', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_changed_rows', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE free integer := 0;', func="\n            WHILE NOT pg_try_advisory_xact_lock(1919907699, free) LOOP free := free + 1; END LOOP;\n            INSERT INTO config_rowcount (relation, bits, block, part, slot, rows)\n            SELECT 'posts_post', bits, block, part, free, rows FROM (\n            SELECT bits, id >> bits AS block, jsonb_build_object() AS part, sum(change) AS rows\n            FROM (SELECT id, 1 AS change FROM arrived WHERE true UNION ALL SELECT id, -1 AS change FROM gone WHERE true) AS changes, (VALUES (12), (18)) AS sizes (bits)\n            GROUP BY bits, id >> bits HAVING sum(change) <> 0\n            ORDER BY bits, block, part\n        ) AS counted\n            ON CONFLICT (relation, bits, block, part, slot)\n            DO UPDATE SET rows = config_rowcount.rows + excluded.rows;\n            RETURN NULL;\n        ", hash='287cb206b88adc16e2e47e0364d5994747895ced', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_count_changed_rows_d878f', referencing='REFERENCING OLD TABLE AS gone  NEW TABLE AS arrived ', table='posts_post', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_no_rows', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_advisory_xact_lock(1919907699, -1); DELETE FROM config_rowcount WHERE relation = 'posts_post'; RETURN NULL;", hash='221c71df5d09df980527356fa1137ec6126be2f4', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_count_no_rows_5f79f', table='posts_post', when='AFTER')),
]
COMMENT_TRIGGERS = [
    pgtrigger.compiler.Trigger(name='count_row_version', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.row_version = OLD.row_version + 1; RETURN NEW;', hash='62b68600e6b1d7e84b842328c5f054614abaf8b2', operation='UPDATE', pgid='pgtrigger_count_row_version_6afd0', table='posts_comment', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='keep_updated_at', sql=pgtrigger.compiler.UpsertTriggerSql(func='NEW.updated_at = statement_timestamp(); RETURN NEW;', hash='9a5e7cb9acdb396f9905da8b92ce297f46ad8ef8', operation='UPDATE OF "text"', pgid='pgtrigger_keep_updated_at_3d8d3', table='posts_comment', when='BEFORE')),
    pgtrigger.compiler.Trigger(name='count_new_comments', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n            PERFORM 1 FROM posts_post WHERE id IN (SELECT post_id FROM (SELECT post_id, 1 AS change FROM arrived) AS changes)\n            ORDER BY id FOR NO KEY UPDATE;\n            UPDATE posts_post SET comments_count = comments_count + counted.change\n            FROM (SELECT post_id, sum(change) AS change FROM (SELECT post_id, 1 AS change FROM arrived) AS changes GROUP BY post_id) AS counted\n            WHERE posts_post.id = counted.post_id;\n            RETURN NULL;\n        ', hash='85a6a535a25d8044c211daac225087e522e9c77d', level='STATEMENT', operation='INSERT', pgid='pgtrigger_count_new_comments_07cca', referencing='REFERENCING NEW TABLE AS arrived ', table='posts_comment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_gone_comments', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n            PERFORM 1 FROM posts_post WHERE id IN (SELECT post_id FROM (SELECT post_id, -1 AS change FROM gone) AS changes)\n            ORDER BY id FOR NO KEY UPDATE;\n            UPDATE posts_post SET comments_count = comments_count + counted.change\n            FROM (SELECT post_id, sum(change) AS change FROM (SELECT post_id, -1 AS change FROM gone) AS changes GROUP BY post_id) AS counted\n            WHERE posts_post.id = counted.post_id;\n            RETURN NULL;\n        ', hash='454a8ec411f167e29f2afc12ce7328bafa26fda3', level='STATEMENT', operation='DELETE', pgid='pgtrigger_count_gone_comments_d6e00', referencing='REFERENCING OLD TABLE AS gone ', table='posts_comment', when='AFTER')),
    pgtrigger.compiler.Trigger(name='count_changed_comments', sql=pgtrigger.compiler.UpsertTriggerSql(func='\n            PERFORM 1 FROM posts_post WHERE id IN (SELECT post_id FROM (SELECT post_id, 1 AS change FROM arrived UNION ALL SELECT post_id, -1 AS change FROM gone) AS changes)\n            ORDER BY id FOR NO KEY UPDATE;\n            UPDATE posts_post SET comments_count = comments_count + counted.change\n            FROM (SELECT post_id, sum(change) AS change FROM (SELECT post_id, 1 AS change FROM arrived UNION ALL SELECT post_id, -1 AS change FROM gone) AS changes GROUP BY post_id) AS counted\n            WHERE posts_post.id = counted.post_id;\n            RETURN NULL;\n        ', hash='ebf5c0cacbe54bb842b111fd58e55e65cef150c0', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_count_changed_comments_a1c54', referencing='REFERENCING OLD TABLE AS gone  NEW TABLE AS arrived ', table='posts_comment', when='AFTER')),
]


class Migration(migrations.Migration):

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name='Post',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('row_version', models.BigIntegerField(db_default=1, editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('title', models.CharField(db_collation='C', max_length=200, validators=[config.api.representation.text.validate_line])),
                ('body', models.CharField(blank=True, default='', max_length=20000, validators=[config.api.representation.text.validate_lines])),
                ('comments_count', models.BigIntegerField(db_default=0, editable=False)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='posts', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['user', 'id'], name='posts_user'), models.Index(fields=['title', 'id'], include=('user',), name='posts_title'), models.Index(fields=['created_at', 'id'], include=('user',), name='posts_created_at'), models.Index(fields=['updated_at', 'id'], include=('user',), name='posts_updated_at'), models.Index(fields=['user', 'title', 'id'], name='posts_user_title'), models.Index(fields=['user', 'created_at', 'id'], name='posts_user_created_at'), models.Index(fields=['user', 'updated_at', 'id'], name='posts_user_updated_at')],
                'constraints': [models.CheckConstraint(condition=models.Q(('title', ''), _negated=True), name='posts_title_given')],
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('row_version', models.BigIntegerField(db_default=1, editable=False)),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('text', models.CharField(max_length=5000, validators=[config.api.representation.text.validate_lines])),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='comments', to=settings.AUTH_USER_MODEL)),
                ('post', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='posts.post')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['post', 'id'], include=('user',), name='comments_post'), models.Index(fields=['post', 'created_at', 'id'], include=('user',), name='comments_post_created_at'), models.Index(fields=['post', 'updated_at', 'id'], include=('user',), name='comments_post_updated_at'), models.Index(fields=['user', 'id'], name='comments_user')],
                'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='comments_text_given')],
            },
        ),
        migrations.CreateModel(
            name='PostWord',
            fields=[
                ('pk', models.CompositePrimaryKey('row_id', 'word', blank=True, editable=False, primary_key=True, serialize=False)),
                ('row_id', models.BigIntegerField()),
                ('word', models.TextField(db_collation='C')),
            ],
            options={
                'indexes': [models.Index(fields=['word', 'row_id'], name='postword_by_word')],
            },
        ),
        *(pgtrigger.migrations.AddTrigger('post', trigger) for trigger in POST_TRIGGERS),
        *(pgtrigger.migrations.AddTrigger('comment', trigger) for trigger in COMMENT_TRIGGERS),
    ]
