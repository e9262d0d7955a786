"""The private names of libraries that the fast path uses, with the versions that they were checked with.

After an upgrade a test tells which of them have moved; read the library's changes, then write the new version here.
Names that a library documents, such as `_meta`, are not private.
"""

CHECKED_VERSIONS = {
    "django": "5.2.19",
    "djangorestframework": "3.18.3",
    "prometheus-client": "0.26.0",
    "psycopg": "3.3.9",
}

# By the class or module that has the name.
PRIVATE_NAMES = {
    "django.core.handlers.wsgi.WSGIRequest": ("_set_content_type_params",),
    "django.db.backends.postgresql.base.DatabaseWrapper": ("_commit", "_prepare_cursor"),
    "django.http.HttpRequest": ("_get_scheme",),
    "psycopg.Connection": ("_deallocate", "_get_tx_start_command"),
    "psycopg._queries": ("PostgresQuery",),
    "rest_framework.request.Request": ("_authenticate", "_load_data_and_files", "_not_authenticated"),
}

# Attributes that objects get when they are made or first used: the test makes one of each.
PRIVATE_ATTRIBUTES = {
    "django.core.handlers.wsgi.WSGIRequest": ("_read_started", "_stream"),
    # Of DRF's `force_authenticate`.
    "django.http.HttpRequest": ("_force_auth_token", "_force_auth_user"),
    "django.http.HttpResponse": ("_container", "_resource_closers"),
    "django.http.QueryDict": ("_mutable",),
    "django.http.response.ResponseHeaders": ("_store",),
    "prometheus_client.mmap_dict.MmapedDict": ("_m", "_positions"),
    "prometheus_client.values.MultiProcessValue": ("_file", "_key"),
    "psycopg.Connection": ("_autocommit",),
    "rest_framework.request.Request": (
        *("_auth", "_authenticator", "_content_type", "_data", "_files", "_full_data", "_stream", "_user"),
    ),
    "rest_framework.response.Response": ("_is_rendered", "_post_render_callbacks"),
    "rest_framework.serializers.Serializer": ("_context",),
}
