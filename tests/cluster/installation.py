"""All of it on one machine: three databases, what leads to them, two nodes of the service, and nginx in front.

Each part has an address of its own, and the port that it has everywhere.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from config.local.account import get_accessible_folder
from config.local.cluster import DATABASE
from tests.cluster.machines import Machine, Machines, Passwords
from tests.cluster.network import MACHINES, Network, connect
from tests.cluster.programs import Program, Room, Supervisor, find_programs, is_transaction_pooler
from tests.faults.service import Service
from tests.service import DEADLINE, Copy, find_free_port, wait_for
from tests.system.proxies import (
    HOST,
    Certificate,
    Ports,
    configure_nginx,
    make_certificate,
    run_proxy,
)

PGBOUNCER, HAPROXY, REDIS = "127.0.2.1", "127.0.2.2", "127.0.2.3"
NODES = ("127.0.3.1", "127.0.3.2")
NAME = "users-service"
FOLDER = Path(tempfile.gettempdir()) / f"{NAME}-cluster-{os.geteuid()}"
WORKERS = 1
ROLE = "users-service"


@dataclass
class Installation:
    """What runs.

    Attributes:
        network: which joins the machines.
        machines: of the database.
        programs: PgBouncer, HAProxy and Redis, by name.
        nodes: of the service.
        port: of nginx, which shows the certificate.
        started: what the first node has printed, by name.
        database: the URL of the primary for its superuser.
    """

    network: Network
    machines: Machines
    programs: Mapping[str, Program]
    nodes: list[Service]
    port: int
    certificate: Certificate
    started: Mapping[str, str]
    database: str

    def set_on(self, machine: Machine, what: str) -> None:
        """Sets something on the PostgreSQL of a machine alone, as in `ALTER SYSTEM`."""
        url = self.database.replace(f"{HAPROXY}:5000", f"{machine.address}:5432")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM {what}")
            connection.execute("SELECT pg_reload_conf()")

    def lines(self) -> Iterator[str]:
        """Where everything is."""
        for machine in self.machines.all:
            ports = {"PostgreSQL": 5432, "Patroni": 8008, "etcd": 2379}
            yield f"{machine.name}: " + ", ".join(f"{name} {machine.address}:{port}" for name, port in ports.items())
        yield f"Primary, by HAProxy: {self.database}"
        yield f"PgBouncer: {PGBOUNCER}:6432; Redis: {REDIS}:6379"
        yield "Nodes: " + ", ".join(f"http://{node.variables['HOST']}:{node.port}" for node in self.nodes)
        yield from (f"{name}: {value}" for name, value in self.started.items() if name != "Address")
        yield f"Certificate: {self.certificate.certificate}"
        yield f"Address: https://{HOST}:{self.port}"


@contextmanager
def running() -> Iterator[Installation]:
    """Starts everything, and stops it after the block; nothing is left but what has failed to end.

    Yields:
        what runs.
    """
    found = find_programs()
    passwords = Passwords()
    with ExitStack() as stack:
        # Only one process has it, so that what is cleared is nobody's.
        network = stack.enter_context(connect(NAME))
        rooms = get_accessible_folder(FOLDER / "rooms")
        _clear(FOLDER, rooms)
        stack.callback(_clear, FOLDER, rooms)
        FOLDER.mkdir()
        # The account that root's programs run as passes through them.
        FOLDER.chmod(0o711)
        rooms.mkdir(mode=0o711)
        supervisor = stack.enter_context(Supervisor())
        machines = Machines(
            [Machine(rooms, address, network, found, passwords) for address in network.addresses], supervisor
        )
        programs = _run_programs(Room(rooms / "way"), found, network, passwords.values, supervisor)
        database = _make_database(passwords.values)
        ports = Ports(find_free_port(), find_free_port())
        copy = Copy(FOLDER / "service")
        nodes = [Service(copy, **_settings(passwords.values, network, address, ports)) for address in NODES]
        # The first one makes the administrator.
        started, *_ = [_start(stack, node) for node in nodes]
        site, certificate = FOLDER / "nginx", make_certificate(FOLDER)
        site.mkdir()
        upstreams = [f"{node.variables['HOST']}:{node.port}" for node in nodes]
        command = ["env", f"--chdir={site}", found["nginx"], *configure_nginx(site, ports, upstreams, certificate)]
        stack.enter_context(run_proxy(command, ports.https))
        yield Installation(network, machines, programs, nodes, ports.https, certificate, started, database)


def write_haproxy_servers(addresses: Sequence[str]) -> str:
    """The lines of haproxy.cfg for members of the database."""
    return "\n".join(f"    server db{i} {address}:5432 check port 8008" for i, address in enumerate(addresses, 1))


def _run_programs(
    room: Room, found: Mapping[str, str], network: Network, passwords: Mapping[str, str], supervisor: Supervisor
) -> dict[str, Program]:
    """HAProxy, PgBouncer and Redis."""
    servers = write_haproxy_servers(network.addresses)
    haproxy = room.write("haproxy.cfg", "haproxy.cfg", {"ADDRESS": HAPROXY, "SERVERS": servers})
    users = room.write_text("users", f'"{ROLE}" "{passwords["SERVICE_PASSWORD"]}"\n')
    values = {
        "ADDRESS": PGBOUNCER,
        "PRIMARY_HOST": HAPROXY,
        "PRIMARY_PORT": 5000,
        "USERS_FILE": users,
    }
    pgbouncer = room.write("pgbouncer.ini", "pgbouncer.ini", values)
    if not is_transaction_pooler(found["pgbouncer"]):
        text = pgbouncer.read_text().replace("pool_mode = transaction", "pool_mode = session")
        room.write_text("pgbouncer.ini", text.replace("max_prepared_statements = 200\n", ""))
    redis = room.write("redis.conf", "redis.conf", {"ADDRESS": REDIS, "REDIS_FOLDER": room.folder, **passwords})
    commands = {
        "HAProxy": [found["haproxy"], "-db", "-f", haproxy],
        "PgBouncer": [found["pgbouncer"], pgbouncer],
        "Redis": [found["redis-server"], redis],
    }
    return {name: supervisor.run(Program(room, name, command, {})) for name, command in commands.items()}


def _make_database(passwords: Mapping[str, str]) -> str:
    """Makes the role and the database of the service. Returns the URL for the superuser."""
    server = f"postgresql://postgres:{passwords['SUPERUSER_PASSWORD']}@{HAPROXY}:5000"

    def leads_to_primary() -> bool:
        # HAProxy takes each member in turn for the primary until it has asked it.
        with suppress(psycopg.OperationalError):
            for _ in range(MACHINES):
                psycopg.connect(f"{server}/postgres?target_session_attrs=read-write").close()
            return True
        return False

    wait_for(leads_to_primary)
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE ROLE \"{ROLE}\" LOGIN PASSWORD '{passwords['SERVICE_PASSWORD']}'")
        connection.execute(f'CREATE DATABASE {DATABASE} OWNER "{ROLE}"')
    return f"{server}/{DATABASE}"


def _settings(passwords: Mapping[str, str], network: Network, address: str, ports: Ports) -> dict[str, object]:
    """The arguments of a node."""
    role = f"{ROLE}:{passwords['SERVICE_PASSWORD']}"
    return {
        "database": f"postgresql://{role}@{PGBOUNCER}:6432/{DATABASE}",
        "log": FOLDER / f"{address}.log",
        "count": WORKERS,
        "HOST": address,
        "DATABASE_MIGRATION_URL": f"postgresql://{role}@{HAPROXY}:5000/{DATABASE}",
        "DATABASE_REPLICA_URLS": ",".join(f"postgresql://{role}@{one}:5432/{DATABASE}" for one in network.addresses),
        "READ_ONLY_WITHOUT_PRIMARY": "true",
        "QUOTA_URL": f"redis://:{passwords['REDIS_PASSWORD']}@{REDIS}:6379/0",
        # Counted, and never used up.
        "RATE_LIMIT_PRINCIPAL": "1000000",
        "PUBLIC_URL": f"https://{HOST}:{ports.https}",
        "ALLOWED_HOSTS": f"{HOST},127.0.0.1",
        "TRUSTED_PROXIES": "1",
    }


def _start(stack: ExitStack, node: Service) -> dict[str, str]:
    started = node.start()
    stack.callback(node.stop)
    return started


def _clear(*folders: Path) -> None:
    """Removes folders, and before that kills whatever has its working folder below them.

    PostgreSQL outlives its supervisor where Patroni was killed, and everything does where this process was.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    left = [each for each in psutil.process_iter() if each.pid not in own and _works_below(folders, each)]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, DEADLINE)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _works_below(folders: Sequence[Path], process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(Path(process.cwd()).is_relative_to(folder) for folder in folders)
    return False
