"""What `startproject` writes, and what the pages of the libraries tell to add."""

import os
from datetime import timedelta

from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = os.environ["JWT_SIGNING_KEY"]
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_filters",
    "rest_framework",
    "benchmarks.stock",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "benchmarks.stock.api"
AUTH_USER_MODEL = "stock.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# A connection stays with its thread. The tables are in a schema of their own, beside the product's.
_given = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _given.pop("dbname"),
        "CONN_MAX_AGE": 600,
        "OPTIONS": _given | {"options": "-c search_path=stock"},
    }
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework_simplejwt.authentication.JWTAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
SIMPLE_JWT = {"SIGNING_KEY": SECRET_KEY, "ACCESS_TOKEN_LIFETIME": timedelta(hours=1)}
