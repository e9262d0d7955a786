import accounts.models
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import oauth2_provider.generators
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    # Its tables refer to this one, and Django would only see to it that the first migration here comes before them.
    run_before = [('oauth2_provider', '0001_initial')]

    operations = [
        migrations.CreateModel(
            name='APIKey',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('name', models.CharField(db_collation='C', max_length=100)),
                ('prefix', models.CharField(max_length=12)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL)),
                ('rotated_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'verbose_name': 'API key',
                'ordering': ['id'],
                'indexes': [models.Index(fields=['user', 'id'], name='api_keys_user'), models.Index(fields=['name', 'id'], name='api_keys_name'), models.Index(fields=['created_at', 'id'], name='api_keys_created_at'), models.Index(fields=['user', 'name', 'id'], name='api_keys_user_name'), models.Index(fields=['user', 'created_at', 'id'], name='api_keys_user_created_at'), models.Index(fields=['prefix'], name='api_keys_prefix', opclasses=['varchar_pattern_ops']), models.Index(condition=models.Q(('revoked_at', None), _negated=True), fields=['id'], name='api_keys_revoked')],
                'constraints': [models.CheckConstraint(condition=models.Q(('scopes', []), _negated=True), name='api_keys_scopes_given')],
            },
        ),
        migrations.CreateModel(
            name='Application',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('client_id', models.CharField(db_index=True, default=oauth2_provider.generators.generate_client_id, max_length=255, unique=True, verbose_name='client ID')),
                ('redirect_uris', models.TextField(blank=True, help_text='Allowed URIs list, space separated', verbose_name='redirect URIs')),
                ('client_type', models.CharField(choices=[('confidential', 'Confidential'), ('public', 'Public')], max_length=32, verbose_name='client type')),
                ('created', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated', models.DateTimeField(auto_now=True, verbose_name='updated')),
                ('name', models.CharField(max_length=100)),
                ('authorization_grant_type', models.CharField(choices=[('authorization-code', 'Authorization code'), ('client-credentials', 'Client credentials')], max_length=18)),
                ('client_secret', models.CharField(blank=True, editable=False, max_length=64)),
                ('allowed_scopes', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(choices=accounts.models.get_scope_choices), blank=True, default=list, size=None)),
                ('owner', models.ForeignKey(blank=True, help_text="The user that client-credentials tokens act for, with that user's role.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='oauth_applications', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'OAuth application',
                'ordering': ['id'],
                'indexes': [models.Index(fields=['owner', 'id'], name='applications_owner')],
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('last_used_at', models.DateTimeField(editable=False, null=True)),
                ('public_id', models.UUIDField(editable=False, unique=True)),
                ('user', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'browser session',
                'indexes': [models.Index(fields=['user', '-last_used_at'], name='sessions_user')],
            },
        ),
        migrations.CreateModel(
            name='LoginSession',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('password_digest', models.CharField(max_length=64)),
                ('refresh_digest', models.BinaryField(max_length=32)),
                ('previous_digest', models.BinaryField(max_length=32, null=True)),
                ('access_id', models.CharField(max_length=32)),
                ('access_used_at', models.DateTimeField(editable=False, null=True)),
                ('rotated_at', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(editable=False, null=True)),
                ('address', models.CharField(default='', editable=False, max_length=45)),
                ('user_agent', models.CharField(default='', editable=False, max_length=300)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='login_sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
                'indexes': [models.Index(fields=['user', '-created_at'], name='login_sessions_user'), models.Index(fields=['expires_at'], name='login_sessions_expires_at')],
            },
        ),
    ]
