"""Outside `make run` nothing is made up: a wrong environment stops the start with one line."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import own_session
from tests.service import CHECKOUT

# RFC 8410, section 10.3.
_BODY = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"
ED25519 = f"-----BEGIN PRIVATE KEY-----\n{_BODY}\n-----END PRIVATE KEY-----"
PUBLIC_KEY = ED25519.replace("PRIVATE", "PUBLIC")
PRODUCTION = {
    "LOCAL": "false",
    "DATABASE_URL": os.environ["DATABASE_URL"],
    "SECRET_KEY": "s-3kfjw9qpzm" * 5,
    "JWT_SIGNING_KEY": "j-5kfjw9qpzm" * 5,
    "ALLOWED_HOSTS": "api.example.com",
    "PUBLIC_URL": "https://api.example.com",
}
SECRETS = ["DATABASE_URL", "SECRET_KEY", "JWT_SIGNING_KEY", "METRICS_TOKEN", "QUOTA_URL"]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads the settings anew, from an environment of these variables alone."""

    def run(variables: dict[str, str]) -> dict[str, Any]:
        for name in [*os.environ]:
            if name not in {"PATH", "HOME"}:
                monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(CHECKOUT / "config/settings.py"))

    return run


@pytest.fixture
def refuse(load: Any) -> Any:
    """Reads settings that must stop the start. Returns the line that is printed."""

    def run(variables: dict[str, str]) -> str:
        with pytest.raises(SystemExit) as stopped:
            load(variables)
        line = str(stopped.value.code)
        assert line.endswith(" (docs/settings.md lists the variables)")
        assert "\n" not in line
        return line.removesuffix(" (docs/settings.md lists the variables)")

    return run


@pytest.mark.parametrize("name", ["DATABASE_URL", "SECRET_KEY", "JWT_SIGNING_KEY", "ALLOWED_HOSTS", "PUBLIC_URL"])
def test_missing_variable_stops_the_start(refuse: Any, name: str) -> None:
    assert name in refuse({key: value for key, value in PRODUCTION.items() if key not in {name, "LOCAL"}})


def test_wrong_value_stops_the_start(refuse: Any) -> None:
    for name, value in [
        ("DEBUG", "perhaps"),
        ("LOCAL", "perhaps"),
        ("SECRET_KEY", "short"),
        ("JWT_SIGNING_KEY", "short"),
        ("JWT_SIGNING_KEY", PRODUCTION["SECRET_KEY"]),
        ("JWT_SIGNING_KEY", PUBLIC_KEY),
        ("JWT_SIGNING_KEY_FALLBACKS", f"{ED25519},{PUBLIC_KEY}"),
        ("DATABASE_URL", "mysql://localhost/service"),
        ("DATABASE_URL", "postgresql://db1,db2/service"),
        ("DATABASE_MIGRATION_URL", "mysql://localhost/service"),
        ("DATABASE_REPLICA_URLS", "mysql://localhost/service"),
        ("DATABASE_REPLICA_URLS", "postgresql://db1,db2/service?target_session_attrs=read-write"),
        ("DATABASE_REPLICA_URLS", "postgresql://db1/service,postgresql://db1:5432/service"),
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
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("CORS_ALLOWED_ORIGINS", "https://app.example,https://other.example/"),
        ("METRICS_TOKEN", "two words"),
        ("LOG_CLIENT_ADDRESS", "perhaps"),
        ("STRICT_TRANSPORT_SECURITY", "preload"),
        ("STRICT_TRANSPORT_SECURITY", "max-age=31536000; preload"),
        ("QUOTA_URL", "redis.example.com"),
        ("QUOTA_URL", "http://redis.example.com"),
    ]:
        assert name in refuse(PRODUCTION | {name: value})


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
    ],
)
def test_wrong_values_are_named_in_one_line_of_text(refuse: Any, values: dict[str, str], line: str) -> None:
    assert refuse(PRODUCTION | values) == line


@pytest.mark.parametrize(
    ("values", "hsts"),
    [
        ({}, (31_536_000, False, False)),
        ({"STRICT_TRANSPORT_SECURITY": "max-age=60; includeSubDomains"}, (60, True, False)),
        ({"STRICT_TRANSPORT_SECURITY": "max-age=60; includeSubDomains; preload"}, (60, True, True)),
        ({"PUBLIC_URL": "http://api.example.com"}, (0, False, False)),
    ],
)
def test_subdomains_and_preload_are_asked_for(load: Any, values: dict[str, str], hsts: tuple[object, ...]) -> None:
    found = load(PRODUCTION | values)
    names = ("SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_HSTS_PRELOAD")
    assert tuple(found[name] for name in names) == hsts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QUOTA_URL", "redis://:pass/word@redis"),
        ("QUOTA_URL", "redis://:pass:word@redis:x"),
        ("QUOTA_URL", "rediss://:password@"),
        *(("EMAIL_URL", f"smtp://user:pass{special}word@mail.example.com:587") for special in "#?/@ "),
    ],
)
def test_wrong_url_with_a_password_is_not_shown(refuse: Any, name: str, value: str) -> None:
    refused = refuse(PRODUCTION | {name: value})
    assert refused.startswith(f"{name}: Must be a")
    assert "word@" not in refused.replace(":password@", "")


@own_session
@pytest.mark.parametrize(("values", "mode"), [({}, "force_generic_plan"), ({"FAST_PATH": "false"}, "auto")])
def test_plan_cache_mode_is_that_of_each_connection(load: Any, values: dict[str, str], mode: str) -> None:
    options = load(PRODUCTION | values)["DATABASES"]["default"]["OPTIONS"]["options"]
    with psycopg.connect(PRODUCTION["DATABASE_URL"], options=options) as connection:
        assert connection.execute("SHOW plan_cache_mode").fetchone() == (mode,)


@pytest.mark.parametrize(
    ("url", "is_pooled"),
    [("", False), ("postgresql://migrator@db/service", False), ("postgresql://db:6000/service", True)],
)
def test_migrations_on_another_server_mean_a_pooler(load: Any, url: str, is_pooled: bool) -> None:
    values = PRODUCTION | {"DATABASE_URL": "postgresql://db/service", "DATABASE_MIGRATION_URL": url}
    assert load(values)["DATABASES"]["default"]["POOLER"] is is_pooled


def test_signing_key_of_several_lines_is_taken(load: Any) -> None:
    other = PRODUCTION["JWT_SIGNING_KEY"]
    found = load(PRODUCTION | {"JWT_SIGNING_KEY": ED25519, "JWT_SIGNING_KEY_FALLBACKS": f"{other},{ED25519}"})
    assert (found["JWT_SIGNING_KEY"], found["JWT_SIGNING_KEY_FALLBACKS"]) == (ED25519, [other, ED25519])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ALLOWED_HOSTS", ["api.example.com", "other.example.com"]),
        ("CORS_ALLOWED_ORIGINS", ["https://a.example.com", "https://b.example.com"]),
        ("SECRET_KEY_FALLBACKS", ["s-2kfjw9qpzm" * 5, "s-1kfjw9qpzm" * 5]),
        ("JWT_SIGNING_KEY_FALLBACKS", ["j-2kfjw9qpzm" * 5, ED25519]),
    ],
)
def test_blanks_around_the_entries_of_a_list_are_no_part_of_them(load: Any, name: str, values: list[str]) -> None:
    assert load(PRODUCTION | {name: f"{values[0]} , {values[1]}"})[name] == values


@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_read_from_a_file(load: Any, tmp_path: Path, name: str) -> None:
    values = PRODUCTION | {"METRICS_TOKEN": "m-7kfjw9qpzm-m-7kfjw9qpzm", "QUOTA_URL": "redis://:word@127.0.0.1:1/2"}
    expected = load(values)
    tmp_path.joinpath("secret").write_text(values.pop(name) + "\n")
    settings = load(values | {f"{name}_FILE": str(tmp_path / "secret")})
    for setting in ("METRICS_TOKEN", "SECRET_KEY", "JWT_SIGNING_KEY", "LOCAL", "QUOTA_URL", "DATABASES"):
        assert settings[setting] == expected[setting]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
@pytest.mark.parametrize("name", SECRETS)
def test_unreadable_file_of_a_secret_stops_the_start(
    refuse: Any, tmp_path: Path, name: str, content: bytes | None
) -> None:
    if content:
        tmp_path.joinpath("secret").write_bytes(content)
    values = {key: value for key, value in PRODUCTION.items() if key != name}
    assert f"{name}_FILE" in refuse(values | {f"{name}_FILE": str(tmp_path / "secret")})


@pytest.mark.parametrize(("values", "told"), [(PRODUCTION, "Set only one of"), ({}, "PUBLIC_URL")])
def test_file_of_a_secret_means_production_and_no_second_value(
    refuse: Any, tmp_path: Path, values: dict[str, str], told: str
) -> None:
    tmp_path.joinpath("secret").write_text(PRODUCTION["SECRET_KEY"])
    assert told in refuse(values | {"SECRET_KEY_FILE": str(tmp_path / "secret")})


def manage(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], **PRODUCTION, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"DATABASE_URL": "postgresql://localhost:1/service"}, "refused"),
        ({"DEBUG": "perhaps"}, "DEBUG: Not a valid boolean. (docs/settings.md lists the variables)"),
    ],
)
def test_service_that_cannot_start_prints_one_line(variables: dict[str, str], told: str) -> None:
    refused = manage("serve", **variables)
    assert refused.returncode != 0
    assert refused.stdout == ""
    assert told in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr


ASK_BY_VENDOR = """
from django.test import Client

for vendor in ("acme", "users"):
    headers = {"Accept": f"application/vnd.{vendor}.v2+json", "Host": "api.example.com"}
    answer = Client().get("/versions", headers=headers)
    print(answer.status_code, answer["API-Version"], answer["Content-Type"])
"""


def test_vendor_of_the_media_types_is_a_setting() -> None:
    asked = manage("shell", "--no-imports", "-c", ASK_BY_VENDOR, API_VENDOR="acme", RATE_LIMIT_ANONYMOUS="0")
    assert asked.stdout.splitlines() == ["200 2 application/json", "406 1 application/json"], asked.stderr
