"""The settings of the service, read from the environment; docs/settings.md lists every variable.

There are two modes. *Local* (`make run`, and `manage.py` beside it): missing values are generated, including the
database. *Production*, as soon as one of the variables in REQUIRED is set: then all of them must be.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.http.request import validate_host
from environs import EnvError, EnvValidationError, FileAwareEnv, ValidationError
from marshmallow.validate import And, ContainsNoneOf, Length, OneOf, Range, Regexp

from accounts.signing_keys import parse_signing_key
from config.api.versions.table import Version
from config.local.cluster import get_default_cluster
from config.local.secrets import get_local_secrets
from config.postgresql.database_url import parse_database_url, with_parameters

# --- Versions of the API ----------------------------------------------------------------------------------------------

# Every version of the API, oldest first. config.api.versions.table lists the changes of each.
API_VERSIONS = (
    Version(1, released=date(2026, 12, 1), deprecated=date(2026, 12, 1), sunset=date(2028, 12, 1)),
    Version(2, released=date(2026, 12, 1)),
)

_ORIGIN = Regexp(
    r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?\Z",
    error="Must be an origin such as https://api.example.com.",
)
_URL = Regexp(r"(https?://[!-~]+)?\Z", error="Must be an address such as http://127.0.0.1:4318.")
_REDIS = Regexp(
    r"(rediss?://([^@/]*@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?(/.*)?|unix://.+)?\Z",
    # Without what was given, which may hold a password.
    error="Must be a URL such as redis://:password@redis.example.com:6379/0.",
)
_SMTP = Regexp(
    r"(smtps?://([^@/?#\s]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?/?)?\Z",
    error="Must be a URL such as smtps://user:password@smtp.example.com:465. In the user name and the password, "
    "percent-encode what is neither a letter nor a digit: @ is %40.",
)


# --- The environment -------------------------------------------------------------------------------------------------

REQUIRED = ("DATABASE_URL", "SECRET_KEY", "JWT_SIGNING_KEY", "ALLOWED_HOSTS", "PUBLIC_URL")
# Each may also be in a file, whose path is in NAME_FILE: whoever may list processes may read their environment.
SECRETS = (
    "DATABASE_URL",
    "DATABASE_MIGRATION_URL",
    "DATABASE_REPLICA_URLS",
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "JWT_SIGNING_KEY",
    "JWT_SIGNING_KEY_FALLBACKS",
    "METRICS_TOKEN",
    "QUOTA_URL",
    "EMAIL_URL",
)

MIN_DISTINCT_CHARACTERS = 10

# Lazy, so that seal() names every wrong variable at once instead of one a start. It reads NAME_FILE in place of NAME.
env = FileAwareEnv(eager=False, expand_vars=False, strip_whitespace=True)

# "a, b" is two entries without blanks.
_read_list = partial(env.list, subcast=str.strip)


@env.parser_for("database_url")
def _parse_database_url(url: str, *, is_optional: bool = False, is_one_of_several: bool = False) -> dict[str, Any]:
    if is_optional and not url:
        return {}
    try:
        return parse_database_url(url, is_one_of_several=is_one_of_several)
    except ValueError as error:
        raise EnvError(str(error)) from None


@env.parser_for("replica_urls")
def _parse_replica_urls(urls: str) -> dict[str, dict[str, Any]]:
    """The settings of each replica by its alias, which is its address: it means the same to all nodes."""
    parsed = [_parse_database_url(url.strip(), is_one_of_several=True) for url in urls.split(",") if url.strip()]
    if any("," in replica["HOST"] for replica in parsed):
        raise EnvError("Each URL must name exactly one server.")
    replicas = {f"{replica['HOST']}:{replica['PORT'] or 5432}": replica for replica in parsed}
    if len(replicas) < len(parsed):
        raise EnvError("Must not repeat a server.")
    return replicas


def _is_given(name: str) -> bool:
    return name in os.environ or f"{name}_FILE" in os.environ


def _find_faults_of_files() -> Iterator[str]:
    """What is wrong with the files of secrets: environs would raise a ValueError, and take the file of two values."""
    for name in SECRETS:
        if path := os.environ.get(f"{name}_FILE"):
            if os.environ.get(name):
                yield f"{name}_FILE: Set only one of {name} and {name}_FILE."
            try:
                Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                yield f"{name}_FILE: {getattr(error, 'strerror', None) or 'Must be UTF-8 text'}: {path}."


if _unreadable := " ".join(_find_faults_of_files()):
    sys.exit(f"{_unreadable} (docs/settings.md lists the variables)")

LOCAL = env.bool("LOCAL", not any(map(_is_given, REQUIRED)))
HOST = env.str("HOST", "127.0.0.1")
PORT = env.int("PORT", 8000, validate=Range(1, 65535))
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - addresses to compare with
_loopback = {"localhost", "127.0.0.1", "[::1]", HOST if ":" not in HOST else f"[{HOST}]"}
_made_up = {}
if LOCAL:
    _made_up = get_local_secrets() | {
        "DATABASE_URL": get_default_cluster().url,
        "ALLOWED_HOSTS": sorted(_loopback) if HOST not in _EVERYWHERE else ["*"],
        "PUBLIC_URL": f"http://{'localhost' if HOST in _EVERYWHERE else HOST}:{PORT}",
    }


def _each(validate: Callable[[str], Any]) -> Callable[[list[str]], None]:
    def check(given: list[str]) -> None:
        for each in given:
            validate(each)

    return check


def _parsed_by(parse: Callable[[str], object], problem: str = "") -> Callable[[str], None]:
    """A validator of what a function parses; the problem, or that of the function, is told of what it does not."""

    def check(text: str) -> None:
        try:
            parse(text)
        except ValueError as error:
            raise ValidationError(problem or str(error)) from None

    return check


_SIGNING_KEY = And(Length(min=32), _parsed_by(parse_signing_key))
_NETWORK = _parsed_by(ip_network, "Must be networks such as 10.1.0.0/16.")


def _required(read: Callable[..., Any], name: str, **options: object) -> Any:
    """Reads a variable that has a made-up value locally and none in production."""
    return read(name, _made_up[name], **options) if LOCAL else read(name, **options)


EMBEDDED_DATABASE = LOCAL and not _is_given("DATABASE_URL")
DEBUG = env.bool("DEBUG", False)
FAST_PATH = env.bool("FAST_PATH", True)
SECRET_KEY = _required(env.str, "SECRET_KEY", validate=Length(min=50))
JWT_SIGNING_KEY = _required(env.str, "JWT_SIGNING_KEY", validate=_SIGNING_KEY)
# Previous keys, which verify what they signed until it expires.
SECRET_KEY_FALLBACKS: list[str] = _read_list("SECRET_KEY_FALLBACKS", [], validate=_each(Length(min=50)))
JWT_SIGNING_KEY_FALLBACKS: list[str] = _read_list("JWT_SIGNING_KEY_FALLBACKS", [], validate=_each(_SIGNING_KEY))
ALLOWED_HOSTS = _required(
    _read_list, "ALLOWED_HOSTS", validate=And(Length(min=1), ContainsNoneOf([""], error="Must not have an empty name."))
)
PUBLIC_URL = _required(env.str, "PUBLIC_URL", validate=_ORIGIN)
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", 0, validate=Range(0, 10))
WORKERS = env.int("WORKERS", max(2, os.cpu_count() or 1), validate=Range(1, 256))
DEFAULT_API_VERSION = env.int("DEFAULT_API_VERSION", 1, validate=OneOf([version.number for version in API_VERSIONS]))
API_VENDOR = env.str(
    "API_VENDOR",
    "users",
    validate=Regexp(
        r"[a-z][a-z0-9-]*\Z",
        error="Must start with a lowercase letter, followed by lowercase letters, digits or hyphens.",
    ),
)
CORS_ALLOWED_ORIGINS: list[str] = _read_list("CORS_ALLOWED_ORIGINS", [], validate=_each(_ORIGIN))
# As hstspreload.org and RFC 6797 write it. That all subdomains answer by TLS alone is the owner's to say.
STRICT_TRANSPORT_SECURITY = env.str(
    "STRICT_TRANSPORT_SECURITY",
    "max-age=31536000",
    validate=Regexp(
        r"max-age=[0-9]{1,10}(; includeSubDomains(; preload)?)?\Z",
        error="Must be a value such as max-age=31536000 or max-age=31536000; includeSubDomains; preload.",
    ),
)
LOG_CLIENT_ADDRESS = env.bool("LOG_CLIENT_ADDRESS", True)
METRICS_TOKEN = env.str(
    "METRICS_TOKEN", "", validate=Regexp(r"([!-~]{16,})?\Z", error="Must be at least 16 characters of visible ASCII.")
)
# The collector of traces, by OpenTelemetry's own variable; its SDK reads the others. If empty, there are no traces.
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "", validate=_URL)
TRACING = bool(OTEL_EXPORTER_OTLP_ENDPOINT)
OPEN_SIGNUP = env.bool("OPEN_SIGNUP", False)
EMAIL_URL = env.str("EMAIL_URL", "", validate=_SMTP)
# Without a mail server nothing is sent. On your own machine, messages then become files (config.local.mail).
SENDS_MAIL = LOCAL or bool(EMAIL_URL)
DEFAULT_FROM_EMAIL = env.str(
    "EMAIL_FROM", "", validate=Regexp(r"([^\r\n]*[^\s@]@[^\s@]+)?\Z", error="Must be an address.")
)
REQUIRE_VERIFIED_EMAIL = env.bool("REQUIRE_VERIFIED_EMAIL", False)
# Requests a minute: of a user over all its credentials, and of an address that sends no good one.
RATE_LIMIT_PRINCIPAL = env.int("RATE_LIMIT_PRINCIPAL", 600, validate=Range(0))
RATE_LIMIT_ANONYMOUS = env.int("RATE_LIMIT_ANONYMOUS", 60, validate=Range(0))
# The Redis that counts these requests; empty: the database does.
QUOTA_URL = env.str("QUOTA_URL", "", validate=_REDIS)
# Failed log-ins a minute for one account from one address (ten times it from all addresses), and for one address.
RATE_LIMIT_LOGIN_ACCOUNT = env.int("RATE_LIMIT_LOGIN_ACCOUNT", 10, validate=Range(0))
RATE_LIMIT_LOGIN_ADDRESS = env.int("RATE_LIMIT_LOGIN_ADDRESS", 30, validate=Range(0))
# Requests that one user, or one such address, has under way at the same time in one worker.
MAX_IN_FLIGHT = env.int("MAX_IN_FLIGHT", 32, validate=Range(0))
# How long a stream may take. It holds a snapshot, for which VACUUM waits.
MAX_STREAM_SECONDS = 600
# How long a stream waits for a client that reads nothing. PostgreSQL would not wait any longer, either.
MAX_STREAM_STALL_SECONDS = 30
# Private networks that webhooks may lead to, in addition to all public addresses.
WEBHOOK_ALLOWED_NETWORKS: list[str] = _read_list("WEBHOOK_ALLOWED_NETWORKS", [], validate=_each(_NETWORK))
# Requests that an endpoint of a webhook gets at the same time.
WEBHOOK_CONCURRENCY = env.int("WEBHOOK_CONCURRENCY", 4, validate=Range(1, 100))
# How long the audit trail and the use of versions are kept, and the answers that retries get.
AUDIT_RETENTION_DAYS = env.int("AUDIT_RETENTION_DAYS", 365, validate=Range(1, 36_500))
IDEMPOTENCY_RETENTION_DAYS = env.int("IDEMPOTENCY_RETENTION_DAYS", 30, validate=Range(1, 36_500))
# Whether changes are recorded as events (config.events), and for how long events are kept.
EVENTS = env.bool("EVENTS", True)
EVENT_RETENTION_DAYS = env.int("EVENT_RETENTION_DAYS", 90, validate=Range(1, 36_500))
_database = _required(env.database_url, "DATABASE_URL")
_migration_database = env.database_url("DATABASE_MIGRATION_URL", "", is_optional=True)
_replicas = env.replica_urls("DATABASE_REPLICA_URLS", "")
# Maximum replica lag, in seconds.
REPLICA_MAX_LAG = 1.0
READ_ONLY_WITHOUT_PRIMARY = env.bool("READ_ONLY_WITHOUT_PRIMARY", False)


def _faults() -> Iterator[str]:
    """Problems of variables that are valid separately, but not together."""
    if TRACING and find_spec("opentelemetry") is None:
        yield (
            "OTEL_EXPORTER_OTLP_ENDPOINT: Tracing requires more packages: "
            ".venv/bin/python -m pip install --require-hashes --no-deps -r requirements-otel.txt"
        )
    if REQUIRE_VERIFIED_EMAIL and not SENDS_MAIL:
        yield "REQUIRE_VERIFIED_EMAIL: Requires EMAIL_URL, which sends the verification emails."
    if READ_ONLY_WITHOUT_PRIMARY and not _replicas:
        yield "READ_ONLY_WITHOUT_PRIMARY: Requires DATABASE_REPLICA_URLS."
    if JWT_SIGNING_KEY == SECRET_KEY:
        yield "JWT_SIGNING_KEY: Must differ from SECRET_KEY."
    for name, keys in (
        ("SECRET_KEY", [SECRET_KEY, *SECRET_KEY_FALLBACKS]),
        ("JWT_SIGNING_KEY", [JWT_SIGNING_KEY, *JWT_SIGNING_KEY_FALLBACKS]),
    ):
        if any(len(set(key)) < MIN_DISTINCT_CHARACTERS for key in keys):
            yield f"{name}: Has too few different characters. Generate a random value."
    if not validate_host(urlsplit(PUBLIC_URL).hostname or "", ALLOWED_HOSTS):
        yield "ALLOWED_HOSTS: Must cover the host of PUBLIC_URL."


def _format_errors(errors: Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    """One line of sentences, those about a single variable after its name."""
    if isinstance(errors, Mapping):
        errors = [f"{name}: {' '.join(messages)}" for name, messages in errors.items()]
    return " ".join(errors)


try:
    env.seal()
    if faults := list(_faults()):
        raise EnvValidationError("These variables contradict each other.", faults)
except EnvValidationError as error:
    sys.exit(f"{_format_errors(error.error_messages)} (docs/settings.md lists the variables)")

# --- Django ----------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    # First, because its templates override the admin's.
    "config.apps.ConfigConfig",
    "config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "pgtrigger",
    "django_filters",
    "corsheaders",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "oauth2_provider",
    "users",
    "orders",
    "posts",
    "payments",
    "accounts",
]
if FAST_PATH:
    CREDENTIAL_BACKEND = "config.fastpath.credentials.FastCredentials"
    QUOTA_BACKEND = f"config.fastpath.credentials.Fast{'Redis' if QUOTA_URL else 'Database'}Quotas"
    REPRESENTATION_BACKEND = "config.fastpath.serializers.CompiledRepresentation"
    # How a request does what would hold its thread for long.
    BLOCKING_BACKEND = "config.fastpath.greenlets.GreenletBlockingBackend"
else:
    CREDENTIAL_BACKEND = "config.api.limits.quotas.CredentialBackend"
    QUOTA_BACKEND = f"config.api.limits.quotas.{'Redis' if QUOTA_URL else 'Database'}Quotas"
    REPRESENTATION_BACKEND = "config.api.representation.serializers.RepresentationBackend"
    BLOCKING_BACKEND = "config.http.blocking.BlockingBackend"
# The viewsets that the accelerator runs. Any other one runs on the reference.
FAST_PATH_VIEWSETS = [
    "accounts.views.APIKeyViewSet",
    "accounts.views.RotationViewSet",
    "config.site.audit.AuditEventViewSet",
    "orders.views.OrderViewSet",
    "orders.views.UserOrderViewSet",
    "payments.views.PaymentViewSet",
    "payments.views.UserPaymentViewSet",
    "posts.views.CommentViewSet",
    "posts.views.PostCommentViewSet",
    "posts.views.PostViewSet",
    "posts.views.UserPostViewSet",
    "users.views.UserViewSet",
]
# For requests of programs to the API (config.api.handlers). Pages, the browsable API and OAuth have the stack below.
API_MIDDLEWARE = [
    "config.server.metrics.MetricsMiddleware",
    "config.http.middleware.RequestMiddleware",
    "config.http.middleware.SecurityHeadersMiddleware",
    "config.api.versions.versioning.VersionMiddleware",
    "config.http.middleware.CrossOriginMiddleware",
    "config.api.limits.quotas.QuotaMiddleware",
    "config.http.middleware.HostMiddleware",
    "config.api.reading.ReadPositionMiddleware",
]
MIDDLEWARE = [
    "config.server.metrics.MetricsMiddleware",
    # Before anything reads the query.
    "config.http.middleware.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.http.middleware.ContentPolicyMiddleware",
    # Around the page that shows an answer, for its forms carry the token.
    "django.middleware.csrf.CsrfViewMiddleware",
    # Around everything that sets headers of a response, because the page shows them.
    "config.api.browsable.middleware.BrowsableMiddleware",
    # Around preflights and the quotas, whose refusals tell the version too.
    "config.api.versions.versioning.VersionMiddleware",
    # Around the quotas: preflights cost nothing, and a refusal can be read.
    "config.http.middleware.CrossOriginMiddleware",
    "config.api.limits.quotas.QuotaMiddleware",
    "config.site.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.http.middleware.HostMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    # Within all that knows the user.
    "config.api.reading.ReadPositionMiddleware",
    # Innermost: it replaces the view of a request that was refused before Django saw it.
    "config.api.exceptions.DomainErrorMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.site.shell.add_shell",
            ],
        },
    },
]
# Resource addresses have no trailing slash; config.urls answers one with 308.
APPEND_SLASH = False
LANGUAGE_CODE = "en"
USE_I18N = False
FORMAT_MODULE_PATH = "config.site.formats"
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
# Served from the packages themselves: no STATIC_ROOT, no collectstatic step that could be forgotten.
WHITENOISE_USE_FINDERS = True
# The icon that browsers ask for by themselves.
WHITENOISE_ROOT = Path(__file__).parent / "root"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# For people, where one of them starts it on a machine of theirs.
COLOURED_LOG = LOCAL and sys.stderr.isatty()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "config.server.logs.Formatter"}},
    "handlers": {"standard_error": {"class": "config.server.logs.Handler", "formatter": "lines"}},
    "root": {"handlers": ["standard_error"], "level": "WARNING"},
    "loggers": {
        # Configured to take Django's own handlers away, which would tell everything a second time.
        "django": {"level": "WARNING"},
        # A request that is refused is no event of the service, and a fault has its line from config.api.exceptions; but
        # with DEBUG, Django answers some faults by a page of its own.
        "django.request": {"level": "ERROR" if DEBUG else "CRITICAL"},
        # It retries, and says so each time.
        "opentelemetry": {"level": "ERROR"},
        "audit": {"level": "INFO"},
        "serve": {"level": "INFO"},
    },
}

# --- Database --------------------------------------------------------------------------------------------------------

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Migrations have another server only where DATABASE_URL leads to a pooler, which they have to go past.
POOLED = bool(_migration_database) and any(_migration_database[name] != _database[name] for name in ("HOST", "PORT"))


def _configure(database: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    return with_parameters(
        {
            **database,
            "ENGINE": f"config.{'fastpath.postgresql' if FAST_PATH else 'postgresql.backend'}",
            "POOLER": POOLED,
            # Behind a pooler, what such a cursor reads outside of a transaction would be of another connection.
            "DISABLE_SERVER_SIDE_CURSORS": POOLED,
        },
        # Prepared statements (config.fastpath.postgresql) are planned once per connection: otherwise PostgreSQL would
        # consider their values at each run, which takes longer than most of these statements.
        plan_cache_mode="force_generic_plan" if FAST_PATH else "auto",
        # `lock_timeout` is below `statement_timeout`, to distinguish a wait for a lock from a slow query.
        statement_timeout="15s",
        lock_timeout="5s",
        idle_in_transaction_session_timeout="30s",
        **parameters,
    )


DATABASES = {"default": _configure(_database)} | {
    alias: _configure(replica, default_transaction_read_only="on") for alias, replica in _replicas.items()
}
# The aliases of the databases that rows are read from where they know enough.
REPLICAS = list(_replicas)
DATABASE_ROUTERS = ["config.postgresql.replicas.reads.ReplicaRouter"] if REPLICAS else []
# Differences for the connections of migrations and long commands. If both URLs name the same database, its name is left
# out, so that tests can replace it.
DIRECT_DATABASE = {"POOLER": False, "DISABLE_SERVER_SIDE_CURSORS": False} | {
    name: value for name, value in _migration_database.items() if value != _database[name]
}

# --- Users and passwords ---------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "users.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.PasswordBackend"]
SESSION_ENGINE = "accounts.sessions"
# Per process: correct Basic passwords (accounts.passwords).
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}
PASSWORD_HASHERS = [
    "accounts.hashers.Argon2idPasswordHasher",
    # These check what was hashed elsewhere.
    "accounts.hashers.BCryptPasswordHasher",
    "accounts.hashers.BCryptSHA256PasswordHasher",
    "accounts.hashers.PHCPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("name", "email")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "users.validators.MaximumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LOGIN_URL = "/session/login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/session/login"

# --- Mail ------------------------------------------------------------------------------------------------------------

_smtp = urlsplit(EMAIL_URL)
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend" if EMAIL_URL else "config.local.mail.EmailBackend"
EMAIL_HOST, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = (
    unquote(part or "") for part in (_smtp.hostname, _smtp.username, _smtp.password)
)
EMAIL_USE_SSL = _smtp.scheme == "smtps"
# A password is never sent in clear, but to the same machine.
EMAIL_USE_TLS = not EMAIL_USE_SSL and bool(EMAIL_HOST_USER) and EMAIL_HOST not in {"localhost", "127.0.0.1", "::1"}
EMAIL_PORT = _smtp.port or (465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = DEFAULT_FROM_EMAIL or f"no-reply@{urlsplit(PUBLIC_URL).hostname}"
# The function that sends each kind of outbox entry.
OUTBOX_SENDERS = dict.fromkeys(["password_reset", "email_verification", "invitation"], "users.messages.send")

# --- OAuth 2.0 -------------------------------------------------------------------------------------------------------

# The public client by which one signs in on the reference; the first start of `make run` registers it.
REFERENCE_CLIENT_ID = "reference" if LOCAL else ""
OAUTH2_PROVIDER_APPLICATION_MODEL = "accounts.Application"
OAUTH2_PROVIDER = {
    "OAUTH2_BACKEND_CLASS": "accounts.oauth.server.Core",
    "OAUTH2_SERVER_CLASS": "accounts.oauth.server.Server",
    "OAUTH2_VALIDATOR_CLASS": "accounts.oauth.validator.Validator",
    "SCOPES_BACKEND_CLASS": "accounts.oauth.server.Scopes",
    # The issuer of the metadata and of RFC 9207, whatever Host a request names.
    "OIDC_ISS_ENDPOINT": PUBLIC_URL,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 15 * 60,
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    # Counted by the toolkit from the end of the access token that was given with it: 14 days from the start.
    "REFRESH_TOKEN_EXPIRE_SECONDS": 14 * 24 * 60 * 60 - 15 * 60,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # http is for loopback alone (accounts.models.Application).
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"] if LOCAL or DEBUG else ["https"],
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_SCHEME": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}

# --- Transport -------------------------------------------------------------------------------------------------------

_https = urlsplit(PUBLIC_URL).scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SECURE_HSTS_SECONDS = int(STRICT_TRANSPORT_SECURITY.removeprefix("max-age=").partition(";")[0]) if _https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = "includeSubDomains" in STRICT_TRANSPORT_SECURITY
SECURE_HSTS_PRELOAD = "preload" in STRICT_TRANSPORT_SECURITY
SECURE_REFERRER_POLICY = "no-referrer"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "config.api.exceptions.csrf_failure"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SILENCED_SYSTEM_CHECKS = [
    # A redirect to https would come after the credential was already sent in clear; the proxy that ends TLS
    # refuses plain HTTP instead (docs/deploy.md).
    "security.W008",
    # Subdomains and preload are the owner's decision (STRICT_TRANSPORT_SECURITY).
    "security.W005",
    "security.W021",
    # Emails are unique without regard to case, among users not removed: an index that the check does not know.
    "auth.E003",
    "auth.W004",
]

# --- CORS: closed until CORS_ALLOWED_ORIGINS opens it, and never for cookies --------------------------------------

CORS_ALLOW_METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
CORS_ALLOW_HEADERS = [
    "Accept",
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "X-API-Key",
    "X-Request-Id",
]
CORS_EXPOSE_HEADERS = [
    "Accept-Patch",
    "Allow",
    "API-Version",
    "Content-Location",
    "Deprecation",
    "Dry-Run",
    "ETag",
    "Idempotent-Replayed",
    "Link",
    "Location",
    "RateLimit",
    "RateLimit-Policy",
    "Request-Id",
    "Retry-After",
    "Sunset",
    "WWW-Authenticate",
    "X-Total-Count",
]

# --- The API ---------------------------------------------------------------------------------------------------------


REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.PrincipalAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["config.api.permissions.ResourcePermission"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.api.representation.renderers.Negotiation",
    "DEFAULT_VERSIONING_CLASS": "config.api.versions.versioning.Versioning",
    "DEFAULT_PARSER_CLASSES": [
        "config.api.requests.JSONParser",
        "config.api.requests.MergePatchParser",
    ],
    "DEFAULT_RENDERER_CLASSES": [
        "config.api.representation.renderers.JSONRenderer",
        "config.api.representation.renderers.BrowsableRenderer",
    ],
    "DEFAULT_SCHEMA_CLASS": "config.api.schema.operations.Schema",
    "EXCEPTION_HANDLER": "config.api.exceptions.handle",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
    # No ?format= and no .json suffix: the Accept header is the one way to choose a format.
    "URL_FORMAT_OVERRIDE": None,
    "FORMAT_SUFFIX_KWARG": None,
}
SIMPLE_JWT = {
    # The keys and their algorithms: accounts.tokens.
    "ISSUER": PUBLIC_URL,
    "AUDIENCE": f"{PUBLIC_URL}/api",
    "ACCESS_TOKEN_LIFETIME": timedelta(minutes=15),
    "REFRESH_TOKEN_LIFETIME": timedelta(days=14),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Users Resource Service",
    "DESCRIPTION": "A REST API for users and their orders, payments, posts and comments.",
    "CONTACT": {"name": "Users Resource Service", "url": f"{PUBLIC_URL}/docs"},
    # The origin of the document itself: pages that call the API have that origin, whatever its name.
    "SERVERS": [{"url": "/", "description": "This service, local or in production", "x-internal": False}],
    # In the order of the reference.
    "TAGS": [
        {"name": "users", "description": "Users and their related resources."},
        {"name": "orders", "description": "Create and read orders."},
        {"name": "payments", "description": "Create payments, with an idempotency key, and read them."},
        {"name": "posts", "description": "Read, write, change and delete posts and their comments."},
        {"name": "comments", "description": "Read, change and delete single comments."},
        *([{"name": "webhooks", "description": "Receive events at your own URL."}] if EVENTS else []),
        {"name": "api-keys", "description": "Create, rotate and revoke API keys."},
        {"name": "sign-in", "description": "Log in for tokens, and read the current user."},
        {"name": "oauth", "description": "OAuth 2.0 endpoints. They use the formats of the OAuth RFCs."},
        {"name": "service", "description": "Health, metrics and the OpenAPI document."},
        {"name": "audit-events", "description": "Read the audit trail, as an administrator."},
        {"name": "entry", "description": "Links to the main collections and to the sign-in endpoints."},
        *([{"name": "events", "description": "Read the feed of changes."}] if EVENTS else []),
        {"name": "sessions", "description": "See where you are signed in, and end a session."},
        {"name": "versions", "description": "Each version with its status, dates and changes."},
    ],
    # The document's version is the API's.
    "VERSION": "",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SCHEMA_PATH_PREFIX": r"/api/v[0-9]+",
    "DEFAULT_GENERATOR_CLASS": "config.api.schema.generator.Generator",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "accounts.schema.add_oauth_endpoints",
        "config.api.schema.generator.postprocess_document",
    ],
    "ENUM_NAME_OVERRIDES": {
        "Role": "users.models.Role",
        "Status": "users.models.Status",
        "EventType": "config.models.events.TYPES",
        "DeliveryStatus": "config.models.webhooks.DeliveryStatus",
    },
}
