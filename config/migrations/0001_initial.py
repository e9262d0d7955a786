import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# Thai, Lao; Myanmar; Khmer; Japanese signs and kana; Chinese characters.
UNSPACED = (
    r"[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3005-\u3007\u3040-\u30FF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF"
    r"\uF900-\uFAFF\U00020000-\U0003FFFF]"
)
ACCENTS = r"[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F]"
SEPARATORS = r"[[:punct:][:space:][:cntrl:]]"
# ASCII is told by its length, and done in a fraction of the time.
FUNCTIONS = rf"""
CREATE FUNCTION config_split_words(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    folded text COLLATE "pg_c_utf8" := value;
BEGIN
    IF octet_length(value) > char_length(value) THEN
        folded := regexp_replace(normalize(folded, NFKD), '{ACCENTS}', '', 'g');
        folded := replace(translate(lower(folded COLLATE "pg_c_utf8"), 'ςıøłđ', 'σiold'), 'ß', 'ss');
        folded := regexp_replace(normalize(folded, NFKC) COLLATE "pg_c_utf8", '{SEPARATORS}', ' ', 'g');
        folded := regexp_replace(folded, '({UNSPACED}+)', ' \1 ', 'g');
    ELSE
        folded := regexp_replace(lower(folded), '{SEPARATORS}', ' ', 'g');
    END IF;
    RETURN array_remove(string_to_array(folded, ' '), '');
END $$;
CREATE FUNCTION config_index_words(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    words text[] := config_split_words(value);
BEGIN
    IF octet_length(value) > char_length(value) THEN
        words := words || ARRAY(
            SELECT string_agg(sign, '') OVER (PARTITION BY run ORDER BY place ROWS BETWEEN CURRENT ROW AND 15 FOLLOWING)
            FROM unnest(words) WITH ORDINALITY AS runs (word, run)
            CROSS JOIN LATERAL unnest(string_to_array(word, NULL)) WITH ORDINALITY AS signs (sign, place)
            WHERE word ~ '^{UNSPACED}'
        );
    END IF;
    RETURN ARRAY(SELECT DISTINCT left(word, 64) FROM unnest(words) AS word);
END $$;
"""

# Rows that are updated far more often than added have room on each page: their new versions need no entry in an index.
# Where most users have one key so far, PostgreSQL looks a key up among all of its user, whose index is the smaller one:
# 10 ms for a user with ten thousand; hence `n_distinct`.
# Django looks for the history of a row, and for what goes with a user, through its whole log; hence two more indexes.
STORAGE = """
ALTER TABLE config_counter SET UNLOGGED;
ALTER TABLE config_readposition SET UNLOGGED, SET (fillfactor = 50);
ALTER TABLE config_rowcount SET (fillfactor = 50);
ALTER TABLE config_idempotencyrecord ALTER COLUMN user_id SET (n_distinct = -0.1);
CREATE INDEX admin_log_object ON django_admin_log (object_id, content_type_id);
CREATE INDEX admin_log_user ON django_admin_log (user_id, action_time DESC);
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('admin', '0003_logentry_add_action_flag_choices'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Counter',
            fields=[
                ('key', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('window', models.DateTimeField()),
                ('count', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ReadPosition',
            fields=[
                ('user_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('replica', models.TextField(db_collation='C')),
                ('timeline', models.CharField(db_collation='C', max_length=8)),
                ('position', models.BigIntegerField()),
                ('waited_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='RowCount',
            fields=[
                ('pk', models.CompositePrimaryKey('relation', 'bits', 'block', 'part', 'slot', blank=True, editable=False, primary_key=True, serialize=False)),
                ('relation', models.CharField(db_collation='C', max_length=63)),
                ('bits', models.SmallIntegerField()),
                ('block', models.BigIntegerField()),
                ('part', models.JSONField()),
                ('slot', models.IntegerField()),
                ('rows', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='Timeline',
            fields=[
                ('id', models.SmallIntegerField(primary_key=True, serialize=False)),
                ('name', models.TextField(db_collation='C')),
            ],
        ),
        migrations.CreateModel(
            name='AnswerCount',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('version', models.IntegerField()),
                ('status', models.PositiveSmallIntegerField()),
                ('count', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('day', 'version', 'status'), name='answer_counts_once')],
            },
        ),
        migrations.CreateModel(
            name='VersionUse',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('version', models.IntegerField()),
                ('kind', models.TextField(blank=True, db_collation='C')),
                ('credential', models.TextField(blank=True, db_collation='C')),
                ('count', models.BigIntegerField()),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'use of a version',
                'verbose_name_plural': 'use of versions',
                'ordering': ['-day', '-id'],
                'indexes': [models.Index(fields=['-day', '-id'], name='version_uses_day'), models.Index(fields=['version', '-day', '-id'], name='version_uses_version')],
                'constraints': [models.UniqueConstraint(fields=('user', 'day', 'version', 'kind', 'credential'), name='version_uses_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('event', models.CharField(max_length=40)),
                ('address', models.GenericIPAddressField(null=True)),
                ('request_id', models.CharField(blank=True, default='', max_length=128)),
                ('facts', models.JSONField(default=dict)),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['user', '-id'], name='audit_events_user'), models.Index(fields=['at'], name='audit_events_at'), models.Index(fields=['event', 'at'], name='audit_events_event'), models.Index(condition=models.Q(('request_id', ''), _negated=True), fields=['request_id'], name='audit_events_request')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('operation', models.CharField(db_collation='C', max_length=100)),
                ('key', models.CharField(db_collation='C', max_length=255)),
                ('fingerprint', models.BinaryField(max_length=32)),
                ('status', models.PositiveSmallIntegerField()),
                ('location', models.TextField()),
                ('body', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('replays', models.PositiveIntegerField(default=0)),
                ('replayed_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='answers_to_others', to=settings.AUTH_USER_MODEL)),
                ('owner_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['created_at'], name='idempotency_records_created_at'), models.Index(fields=['user', 'id'], name='idempotency_records_of_user'), models.Index(condition=models.Q(('owner', None), _negated=True), fields=['owner'], name='idempotency_records_owner'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('owner_ids', None), _negated=True), fields=['owner_ids'], name='idempotency_records_owners')],
                'constraints': [models.UniqueConstraint(fields=('key', 'user', 'operation'), name='idempotency_records_unique')],
            },
        ),
        migrations.CreateModel(
            name='OutboxEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=40)),
                ('parameters', models.JSONField(default=dict)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('sent', 'Sent'), ('failed', 'Failed'), ('dropped', 'Dropped')], default='pending', max_length=7)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('error', models.CharField(blank=True, default='', max_length=100)),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'outbox entries', 'ordering': ['-id'],
                'indexes': [models.Index(fields=['status', 'due_at'], name='outbox_entries_due'), models.Index(fields=['user', '-id'], name='outbox_entries_user')],
            },
        ),
        migrations.RunSQL(FUNCTIONS + STORAGE),
    ]
