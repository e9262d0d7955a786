"""Outside `make run` nothing is made up: a wrong environment stops the start with one line."""

import os
from pathlib import Path

import pytest

from tests.conftest import own_session
from tests.service import Copy

PRODUCTION = {
    "LOCAL": "false",
    "DATABASE_URL": os.environ["DATABASE_URL"],
    "SECRET_KEY": "s-3kfjw9qpzm" * 5,
    "JWT_SIGNING_KEY": "j-5kfjw9qpzm" * 5,
    "ALLOWED_HOSTS": "api.example.com",
    "PUBLIC_URL": "https://api.example.com",
}


@pytest.mark.parametrize("name", ["DATABASE_URL", "SECRET_KEY", "JWT_SIGNING_KEY", "ALLOWED_HOSTS", "PUBLIC_URL"])
def test_missing_variable_stops_the_start(checkout: Copy, name: str) -> None:
    refuses(checkout, name, {key: value for key, value in PRODUCTION.items() if key not in {name, "LOCAL"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "perhaps"),
        ("LOCAL", "perhaps"),
        ("SECRET_KEY", "short"),
        ("JWT_SIGNING_KEY", "short"),
        ("JWT_SIGNING_KEY", PRODUCTION["SECRET_KEY"]),
        ("DATABASE_URL", "mysql://localhost/service"),
        ("DATABASE_URL", "postgresql://db1,db2/service"),
        ("DATABASE_MIGRATION_URL", "mysql://localhost/service"),
        ("DATABASE_POOLER", "odyssey"),
        ("DATABASE_PLAN_CACHE_MODE", "force_custom_plan"),
        ("DATABASE_REPLICA_URLS", "mysql://localhost/service"),
        ("DATABASE_REPLICA_URLS", "postgresql://db1,db2/service?target_session_attrs=read-write"),
        ("DATABASE_REPLICA_URLS", "postgresql://db1/service,postgresql://db1:5432/service"),
        ("REPLICA_MAX_LAG", "0"),
        ("READ_ONLY_WITHOUT_PRIMARY", "true"),
        ("PUBLIC_URL", "api.example.com"),
        ("SECRET_KEY", "a" * 60),
        ("JWT_SIGNING_KEY", "a" * 60),
        ("ALLOWED_HOSTS", ","),
        ("ALLOWED_HOSTS", "other.example.com"),
        ("PUBLIC_URL", "http://x:notaport"),
        ("DEFAULT_API_VERSION", "9"),
        ("PORT", "eighty"),
        ("WORKERS", "0"),
        ("RATE_LIMIT_PRINCIPAL", "-1"),
        ("MAX_STREAM_STALL_SECONDS", "31"),
        ("CORS_ALLOWED_ORIGINS", "https://app.example,https://other.example/"),
        ("METRICS_TOKEN", "two words"),
        ("QUOTA_URL", "redis.example.com"),
        ("QUOTA_URL", "http://redis.example.com"),
    ],
)
def test_wrong_value_stops_the_start(checkout: Copy, name: str, value: str) -> None:
    refuses(checkout, name, PRODUCTION | {name: value})


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            {"SECRET_KEY": "short", "DEBUG": "perhaps"},
            "DEBUG: Not a valid boolean. SECRET_KEY: Shorter than minimum length 50.",
        ),
        (
            {"JWT_SIGNING_KEY": PRODUCTION["SECRET_KEY"], "ALLOWED_HOSTS": "other.example.com"},
            "JWT_SIGNING_KEY: Must differ from SECRET_KEY. ALLOWED_HOSTS: Must cover the host of PUBLIC_URL.",
        ),
        (
            {"DATABASE_POOLER": "pgbouncer"},
            "DATABASE_MIGRATION_URL: Must lead past the pooler, which DATABASE_POOLER names.",
        ),
    ],
)
def test_wrong_values_are_named_in_one_line_of_text(checkout: Copy, values: dict[str, str], line: str) -> None:
    refused = checkout.manage("version", **PRODUCTION | values)
    assert refused.stderr == f"{line} (docs/operations.md lists the variables)\n"


@pytest.mark.parametrize("value", ["redis://:pass/word@redis", "redis://:pass:word@redis:x", "rediss://:password@"])
def test_wrong_address_of_redis_is_not_shown(checkout: Copy, value: str) -> None:
    refused = checkout.manage("version", **PRODUCTION, QUOTA_URL=value)
    wanted = "Must be an address such as redis://:password@redis.example.com:6379/0."
    assert refused.stderr == f"QUOTA_URL: {wanted} (docs/operations.md lists the variables)\n"


@own_session
@pytest.mark.parametrize(
    ("values", "mode"), [({}, "force_generic_plan"), ({"DATABASE_PLAN_CACHE_MODE": "auto"}, "auto")]
)
def test_plan_cache_mode_is_that_of_each_connection(checkout: Copy, values: dict[str, str], mode: str) -> None:
    script = "from django.db import connection as c; print(c.cursor().execute('SHOW plan_cache_mode').fetchone()[0])"
    asked = checkout.manage("shell", "--no-imports", "-c", script, **PRODUCTION | values)
    assert asked.stdout == f"{mode}\n", asked.stderr


SECRETS = ["DATABASE_URL", "SECRET_KEY", "JWT_SIGNING_KEY", "METRICS_TOKEN", "QUOTA_URL"]


@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_read_from_a_file(checkout: Copy, tmp_path: Path, name: str) -> None:
    values = PRODUCTION | {"METRICS_TOKEN": "m-7kfjw9qpzm-m-7kfjw9qpzm", "QUOTA_URL": "redis://:word@127.0.0.1:1/2"}
    tmp_path.joinpath("secret").write_text(values.pop(name) + "\n")
    wanted = ("METRICS_TOKEN", "SECRET_KEY", "LOCAL", "QUOTA_URL")
    script = f"from django.conf import settings; print({', '.join(f'settings.{each}' for each in wanted)})"
    asked = checkout.manage(
        "shell", "--no-imports", "-c", script, **values, **{f"{name}_FILE": str(tmp_path / "secret")}
    )
    expected = f"m-7kfjw9qpzm-m-7kfjw9qpzm {PRODUCTION['SECRET_KEY']} False redis://:word@127.0.0.1:1/2\n"
    assert asked.stdout == expected, asked.stderr


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
@pytest.mark.parametrize("name", SECRETS)
def test_unreadable_file_of_a_secret_stops_the_start(
    checkout: Copy, tmp_path: Path, name: str, content: bytes | None
) -> None:
    if content:
        tmp_path.joinpath("secret").write_bytes(content)
    values = {key: value for key, value in PRODUCTION.items() if key != name}
    refuses(checkout, f"{name}_FILE", values | {f"{name}_FILE": str(tmp_path / "secret")})


def test_secret_that_is_given_twice_stops_the_start(checkout: Copy, tmp_path: Path) -> None:
    tmp_path.joinpath("secret").write_text(PRODUCTION["SECRET_KEY"])
    refuses(checkout, "Give one of", PRODUCTION | {"SECRET_KEY_FILE": str(tmp_path / "secret")})


def test_file_of_a_required_secret_means_production(checkout: Copy, tmp_path: Path) -> None:
    tmp_path.joinpath("secret").write_text(PRODUCTION["SECRET_KEY"])
    refuses(checkout, "PUBLIC_URL", {"SECRET_KEY_FILE": str(tmp_path / "secret")})


def test_unreachable_database_is_one_line(checkout: Copy) -> None:
    refuses(checkout, "refused", PRODUCTION | {"DATABASE_URL": "postgresql://localhost:1/service"})


ASK_BY_VENDOR = """
from django.test import Client

for vendor in ("acme", "users"):
    headers = {"Accept": f"application/vnd.{vendor}.v2+json", "Host": "api.example.com"}
    answer = Client().get("/versions", headers=headers)
    print(answer.status_code, answer["API-Version"], answer["Content-Type"])
"""


def test_vendor_of_the_media_types_is_a_setting(checkout: Copy) -> None:
    asked = checkout.manage("shell", "--no-imports", "-c", ASK_BY_VENDOR, **PRODUCTION, API_VENDOR="acme")
    assert asked.stdout.splitlines() == ["200 2 application/json", "406 1 application/json"], asked.stderr


ASK_BY_EARLIER_KEYS = """
from accounts.tokens import Backend, SessionToken
from config.http.signing_keys import parse_signing_key

present = SessionToken.backend
for key in {earlier}:
    earlier = Backend(parse_signing_key(key), audience=present.audience, issuer=present.issuer)
    print(present.decode(earlier.encode(dict(sub="1")))["sub"])
"""


def test_earlier_signing_keys_are_a_setting(checkout: Copy) -> None:
    earlier = ["e-7kfjw9qpzm" * 5, "f-7kfjw9qpzm" * 5]
    script = ASK_BY_EARLIER_KEYS.format(earlier=earlier)
    asked = checkout.manage(
        "shell", "--no-imports", "-c", script, **PRODUCTION, JWT_SIGNING_KEY_FALLBACKS=",".join(earlier)
    )
    assert asked.stdout.split() == ["1", "1"], asked.stderr


def refuses(checkout: Copy, word: str, variables: dict[str, str]) -> None:
    refused = checkout.manage("serve", **variables)
    assert refused.returncode != 0
    assert refused.stdout == ""
    assert word in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
