"""The service as a user starts it: other processes, on a copy of the checkout with a folder of data of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError

import psycopg
import pytest

from config.local.account import get_accessible_folder
from config.local.cluster import Cluster
from tests.plugins import secrecy

CHECKOUT = Path(__file__).resolve().parents[1]
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "benchmarks", "node_modules", "test-artefacts")
DEADLINE = 30.0
# Tests of other things than quotas ask more often than a client may.
UNLIMITED = {"RATE_LIMIT_PRINCIPAL": "0", "RATE_LIMIT_ANONYMOUS": "0"}
# Posts of a user, of a given number, as long as one may be. Random characters are hard to compress.
INCOMPRESSIBLE_POSTS = (
    "INSERT INTO posts_post (user_id, title, body) SELECT %s, 'Incompressible',"
    " (SELECT string_agg(chr(65536 + floor(random() * 60000)::int), '') FROM generate_series(1, 20000) WHERE post > 0)"
    " FROM generate_series(1, %s) AS post"
)


def get_rest(headers: Message) -> int:
    """What is left of the quota, as the headers of an answer tell."""
    return int(headers["RateLimit"].split(";")[1].removeprefix("r="))


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Copy:
    """A copy of the checkout, which shares nothing with it but the installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(CHECKOUT, folder, ignore=NOT_COPIED)
        environment = folder / ".venv"
        environment.mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            (environment / name).symlink_to(Path(sys.prefix) / name)
        shutil.copy(CHECKOUT / "requirements.txt", environment)

    def start(
        self, *arguments: str, errors: int | IO[str] = subprocess.PIPE, **variables: str
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            arguments,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "WORKERS": "2", **UNLIMITED, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def manage(
        self, *arguments: str, seconds: float = DEADLINE, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        process = self.start(".venv/bin/python", "manage.py", *arguments, **variables)
        output, errors = process.communicate(timeout=seconds)
        secrecy.watch.record("manage.py", errors)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def processes(self) -> dict[int, str]:
        """The command lines of the processes that work in the copy or are told its path, by process id."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                inside = process.joinpath("cwd").readlink().is_relative_to(self.folder)
            except OSError:
                continue
            # A zombie has no command line.
            if command and (inside or str(self.folder) in command):
                found[int(process.name)] = command
        return found

    def postmaster(self) -> int:
        return next(pid for pid, command in self.processes().items() if "bin/postgres -D" in command)


class Service:
    """`serve` in the foreground of its own process group, as in a terminal."""

    def __init__(self, copy: Copy, *command: str, **variables: str) -> None:
        self.configure(copy, *command, **variables)
        # Of another service, which had the port before.
        self.log.unlink(missing_ok=True)
        self.lines = self.launch()
        if not self.lines[-1:] or not self.lines[-1].startswith("Address: "):
            pytest.fail(f"The service did not start: {self.log.read_text()}")

    def configure(self, copy: Copy, *command: str, **variables: str) -> None:
        self.port = find_free_port()
        self.copy = copy
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = command or (".venv/bin/python", "manage.py", "serve")
        self.variables = {"PORT": str(self.port), **variables}
        # A file, which takes any number of lines: nobody reads them before the end.
        self.log = copy.folder.parent / f"{self.port}.log"

    def launch(self) -> list[str]:
        """Starts the process. Returns what it prints up to its address, or until it ends."""
        with self.log.open("a") as log:
            self.process = self.copy.start(*self.command, errors=log, **self.variables)
        assert self.process.stdout
        lines = []
        for line in self.process.stdout:
            name, _, value = line.rstrip("\n").partition(": ")
            if name in {"Password", "API key"}:
                secrecy.watch.note(value, name)
            lines.append(line.rstrip("\n"))
            if name == "Address":
                break
        return lines

    def workers(self) -> list[int]:
        """The process ids of those who listen: the children of the one that was started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if serves(int(pid))]

    def status(self) -> int:
        """What the readiness endpoint answers; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as response:  # noqa: S310
                return int(response.status)
        except HTTPError as error:
            return error.code
        except (URLError, ConnectionError):
            return 0

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops the service. Returns its exit code."""
        self.process.send_signal(number)
        try:
            output, _ = self.process.communicate(timeout=DEADLINE)
            for written in (output, self.log.read_text()):
                secrecy.watch.record("serve", written)
        finally:
            self.process.kill()
        return self.process.returncode


def serves(pid: int) -> bool:
    """Whether a process is there and no zombie, which has no command line, and belongs to `manage.py serve`."""
    with suppress(OSError):
        return b"manage.py\0serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


class Reply(NamedTuple):
    """What a running service has answered, and within how many seconds."""

    status: int
    headers: Message
    content: bytes
    seconds: float

    def json(self) -> Any:
        return json.loads(self.content)


def ask(
    service: Service, path: str, method: str = "GET", body: Any = None, *, timeout: float = 30, **headers: str
) -> Reply:
    """Asks on a connection of its own, so that the kernel chooses among the workers; JSON but for bytes."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
    began = time.monotonic()
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=timeout)) as connection:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read(), time.monotonic() - began)


def wait_for(condition: Callable[[], object], seconds: float = DEADLINE) -> float:
    """Waits until a condition holds. Returns how long it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "waited in vain"
        time.sleep(0.01)
    return time.monotonic() - start


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder outside that of pytest, which is closed to the account that root's database runs as."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@contextmanager
def temporary_copy(name: str) -> Iterator[Copy]:
    with open_folder() as folder:
        copy = Copy(folder / name)
        try:
            yield copy
        finally:
            cluster = Cluster(get_accessible_folder(copy.folder / ".data/postgresql"))
            shutil.rmtree(cluster.sockets, ignore_errors=True)
            shutil.rmtree(cluster.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def checkout() -> Iterator[Copy]:
    """A copy whose path has spaces, and is too long for a socket."""
    with temporary_copy(" ".join(["a long path"] * 9)) as copy:
        yield copy


@pytest.fixture(scope="session")
def first_start(checkout: Copy) -> list[str]:
    """What the service printed when it was started for the first time; it is stopped again."""
    first = Service(checkout)
    first.stop()
    return first.lines


@pytest.fixture
def fresh_checkout() -> Iterator[Copy]:
    """A copy in which nothing was started yet."""
    with temporary_copy("service") as copy:
        yield copy


@pytest.fixture(scope="module")
def service(checkout: Copy, first_start: list[str]) -> Iterator[Service]:
    """The service, running; whatever a test does to it, it recovers from."""
    running = Service(checkout)
    yield running
    running.stop()


def get_key(lines: Iterable[str]) -> str:
    """The API key that a first start has printed."""
    return dict(line.split(": ", 1) for line in lines if ": " in line)["API key"]


LONG_POSTS = 1_500


@contextmanager
def long_posts(copy: Copy) -> Iterator[None]:
    """Posts that `q=long` finds: a list of 27 MB, more than all buffers between the database and a client take."""
    with psycopg.connect(get_database_url(copy), autocommit=True) as database:
        database.execute(
            "INSERT INTO posts_post (user_id, title, body, created_at, updated_at)"
            " SELECT 1, 'Long', repeat('x', 18000), now(), now() FROM generate_series(1, %s)",
            [LONG_POSTS],
        )
        yield
        database.execute("DELETE FROM posts_post WHERE title = 'Long'")


def get_database_url(copy: Copy) -> str:
    return Cluster(get_accessible_folder(copy.folder / ".data/postgresql")).url


# --- Of the module's fixture `single`, a service of one worker


@pytest.fixture(scope="module")
def key(single: Service) -> dict[str, str]:
    """The credential of an administrator."""
    return {"X-API-Key": single.copy.manage("create_api_key", "admin@example.com").stdout.strip()}


@pytest.fixture
def database(single: Service) -> Iterator[psycopg.Connection]:
    with psycopg.connect(get_database_url(single.copy), autocommit=True) as connection:
        yield connection
