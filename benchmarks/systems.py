"""The systems that are measured: the service itself, and what it is compared with, over the same rows."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import psycopg

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from config.local.secrets import DATA_FOLDER

ROOT = Path(__file__).resolve().parent.parent
FOLDER = DATA_FOLDER / "bench"
PACKAGES = FOLDER / "packages"  # what the service does not have, `make bench` installs beside it
PASSWORD = "four plain words here"
CALLERS = 16
# With few users, some of every kind of order; with many, an index as deep as theirs.
ORDERS_PER_USER = 3
SECRETS = {name: secrets.token_urlsafe(48) for name in ("SECRET_KEY", "JWT_SIGNING_KEY")}
# Counted all the same, as every feature of the contract is on.
QUOTAS = dict.fromkeys(("RATE_LIMIT_PRINCIPAL", "RATE_LIMIT_ANONYMOUS"), str(10**9))
# The names under which Django made the tables, and what they are filled from.
COPIES = {
    "stock_user": (
        "users_user",
        "id, password, name, email, role, status, email_verified_at, external_id, created_at, updated_at",
    ),
    "stock_order": ("orders_order", "id, user_id, item, qty, created_at"),
}


class System:
    """A server of its own process group, on a port of its own."""

    def __init__(self, name: str, database: str, **variables: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.name = name
        self.prefix = "/api/v1" if name == "product" else ""
        self.callers = callers(database)
        self.log = FOLDER / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *COMMANDS[name](self.port)],
                cwd=ROOT,
                env=environment(name, database) | {"PORT": str(self.port), "PUBLIC_URL": self.origin} | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Returns as soon as a request is answered. Raises SystemExit when the server ends instead."""
        while self.process.poll() is None:
            with suppress(OSError):
                self.ask("GET", "/users", "")
                return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} does not start; see {self.log}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)

    def tokens(self) -> list[str]:
        """A token of each caller: of the service's own login, of the others as simplejwt makes them."""
        if self.name != "product":
            return [token(identifier) for identifier, _ in self.callers]
        bodies = [{"email": email, "password": PASSWORD} for _, email in self.callers]
        return [self.ask("POST", "/login", "", body)[1]["data"]["access_token"] for body in bodies]

    def ask(self, method: str, path: str, token: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, self.prefix + path, body and json.dumps(body), headers(token, body, key))
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, json.loads(text)


COMMANDS = {
    "product": lambda port: ["manage.py", "serve"],
    "stock": lambda port: [
        *("-m", "gunicorn", "--worker-class", "gthread", "--workers", "2", "--threads", "4", "--keep-alive", "30"),
        *("--bind", f"127.0.0.1:{port}", "--log-level", "error", "django.core.wsgi:get_wsgi_application()"),
    ],
    "limit": lambda port: [
        *("-m", "granian", "--interface", "rsgi", "--loop", "uvloop", "--workers", "2", "--http", "1", "--no-ws"),
        *("--port", str(port), "--log-level", "error", "benchmarks.thin:application"),
    ],
}


def environment(name: str, database: str) -> dict[str, str]:
    found = os.environ | SECRETS | QUOTAS | {"DATABASE_URL": database, "ALLOWED_HOSTS": "127.0.0.1"}
    found |= {"LOCAL": "false", "PUBLIC_URL": "http://127.0.0.1"}
    if name != "product":
        found |= {"PYTHONPATH": f"{ROOT}:{PACKAGES}", "DJANGO_SETTINGS_MODULE": "benchmarks.stock.settings"}
    return found


def headers(token: str, body: Any = None, key: str = "") -> dict[str, str]:
    found = {"Accept": "application/json"}
    found |= {"Authorization": f"Bearer {token}"} if token else {}
    found |= {"Content-Type": "application/json"} if body is not None else {}
    return found | ({"Idempotency-Key": key} if key else {})


def token(user: int) -> str:
    now = int(time.time())
    claims = {"token_type": "access", "iat": now, "exp": now + 86_400, "jti": uuid4().hex, "user_id": str(user)}
    return jwt.encode(claims, SECRETS["JWT_SIGNING_KEY"], "HS256")


@contextmanager
def running(names: Sequence[str], database: str) -> Iterator[list[System]]:
    systems: list[System] = []
    try:
        for name in names:
            systems.append(System(name, database))
            systems[-1].wait()
        yield systems
    finally:
        for system in systems:
            system.stop()


# --- The rows --------------------------------------------------------------------------------------------------------


@contextmanager
def postgresql() -> Iterator[Cluster]:
    """A server for the benchmarks alone, set as that of `make run`."""
    # As with Ctrl-C, whatever was started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for folder in (DATA_FOLDER, FOLDER):
        folder.mkdir(mode=0o711, exist_ok=True)
    cluster = Cluster(get_accessible_folder(FOLDER / "postgresql"))
    with cluster.running():
        yield cluster


def filled(cluster: Cluster, users: int) -> str:
    """The name of the database with so many users, which is made when it is not there."""
    name, draft = f"users_{users}", "draft"
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            print(f"Filling a database with {users:,} users, once ...", file=sys.stderr, flush=True)
            connection.execute(f"DROP DATABASE IF EXISTS {draft} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {draft}")
            _fill(address(cluster, draft), users)
            connection.execute(f"ALTER DATABASE {draft} RENAME TO {name}")
    return name


@contextmanager
def copied(cluster: Cluster, name: str) -> Iterator[str]:
    """The address of a copy to be written to, so that each run finds the same rows."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS run WITH (FORCE)")
        connection.execute(f"CREATE DATABASE run TEMPLATE {name} STRATEGY file_copy")
        try:
            yield address(cluster, "run")
        finally:
            connection.execute("DROP DATABASE run WITH (FORCE)")


def address(cluster: Cluster, name: str) -> str:
    return f"{cluster.url.rpartition('/')[0]}/{name}"


def callers(database: str) -> list[tuple[int, str]]:
    """Id and email of those who may read everything, and have a password."""
    statement = "SELECT id, email FROM users_user WHERE role = 'support' AND status = 'active' ORDER BY id LIMIT %s"
    with psycopg.connect(database) as connection:
        return connection.execute(statement, [CALLERS]).fetchall()


def _fill(database: str, users: int) -> None:
    orders = ["--orders-per-user", str(ORDERS_PER_USER)] if users <= 1_000_000 else []
    manage("product", database, "migrate", "--verbosity", "0")
    manage("product", database, "seed", "--users", str(users - 1), *orders)
    # The last user gives its password to the callers.
    manage("product", database, "create_user", "last@example.com", "--name", "Last", given=PASSWORD)
    identifiers = [identifier for identifier, _ in callers(database)]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "UPDATE users_user SET password = (SELECT password FROM users_user WHERE email = 'last@example.com') "
            "WHERE id = ANY(%s)",
            [identifiers],
        )
        connection.execute("CREATE SCHEMA stock")
        manage("stock", database, "migrate", "--run-syncdb", "--verbosity", "0")
        for table, (source, columns) in COPIES.items():
            connection.execute(f"INSERT INTO stock.{table} ({columns}) SELECT {columns} FROM {source} ORDER BY id")
            connection.execute(f"SELECT setval(pg_get_serial_sequence('stock.{table}', 'id'), max(id)) FROM {source}")
        connection.execute("VACUUM (FREEZE, ANALYZE)")
        connection.execute("CHECKPOINT")


def manage(name: str, database: str, *arguments: str, given: str = "") -> None:
    program = ["manage.py"] if name == "product" else ["-m", "django"]
    command = [sys.executable, *program, *arguments]
    subprocess.run(command, cwd=ROOT, env=environment(name, database), input=given, text=True, check=True)
