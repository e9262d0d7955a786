"""The three machines of the database: etcd, and PostgreSQL under Patroni."""

from __future__ import annotations

import base64
import json
import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil

from config.local.account import get_binaries_folder
from tests.cluster.network import Network
from tests.cluster.programs import Program, Room, Supervisor
from tests.service import wait_for

# To make a cluster, or to bring a member back.
PATIENCE = 120.0
# What a member may take to answer.
TIMEOUT = 2.0


class Machine:
    """One of three.

    Attributes:
        name: of the members of etcd and of Patroni.
        address: of this machine alone.
        etcd: its member of etcd.
        patroni: which runs its PostgreSQL.
    """

    def __init__(
        self, folder: Path, address: str, network: Network, programs: Mapping[str, str], passwords: Passwords
    ) -> None:
        names = {other: f"db{i}" for i, other in enumerate(network.addresses, 1)}
        self.name, self.address = names[address], address
        self._passwords = passwords
        room = Room(folder / self.name, network.namespaces.get(address))
        self._data = room.folder / "postgresql"
        values = {
            "MEMBER": self.name,
            "ADDRESS": address,
            "ETCD_DATA": room.folder / "etcd",
            "ETCD_MEMBERS": ",".join(f"{name}=http://{other}:2380" for other, name in names.items()),
            "ETCD_HOSTS": ",".join(f"{other}:2379" for other in names),
            "SHARED_BUFFERS": "128MB",
            "POSTGRESQL_DATA": self._data,
            "POSTGRESQL_PROGRAMS": get_binaries_folder(),
            "NETWORK": network.everyone,
            "ADMINISTRATORS": f"{network.clients}/32",
            **passwords.values,
        }
        etcd = room.write("etcd.conf", "etcd.conf", values).read_text().splitlines()
        variables = dict(line.split("=", 1) for line in etcd if not line.startswith("#"))
        self.etcd = Program(room, "etcd", [programs["etcd"]], variables)
        configuration = room.write("patroni.yml", "patroni.yml", values)
        self.patroni = Program(room, "patroni", [programs["patroni"], configuration], {})

    def processes(self) -> list[psutil.Process]:
        """Patroni, and PostgreSQL, which outlives it."""
        found = [self.patroni.process] if self.patroni.process else []
        with suppress(OSError, ValueError, psutil.NoSuchProcess):
            postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().partition("\n")[0]))
            if str(self._data) in " ".join(postmaster.cmdline()):
                found += [postmaster, *postmaster.children(recursive=True)]
        return found

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to Patroni and all of PostgreSQL at once."""
        processes = self.processes()
        # All stand still before the first one ends: a process of PostgreSQL would outlive the others for a moment.
        for send in (signal.SIGSTOP, number):
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(send)

    def ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """What Patroni answers; None if it does not."""
        connection = HTTPConnection(self.address, 8008, timeout=TIMEOUT if body is None else PATIENCE)
        token = base64.b64encode(f"patroni:{self._passwords.values['PATRONI_PASSWORD']}".encode()).decode()
        try:
            connection.request(method, path, body and json.dumps(body), {"Authorization": f"Basic {token}"})
            answer = connection.getresponse().read()
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()
        with suppress(ValueError):
            return json.loads(answer)
        return answer.decode()


class Passwords:
    """Of the roles and doors of an installation, by the names that the configurations have for them."""

    def __init__(self) -> None:
        names = ("PATRONI", "SUPERUSER", "REPLICATION", "REWIND", "SERVICE", "REDIS")
        self.values = {f"{name}_PASSWORD": secrets.token_urlsafe(12) for name in names}


class Machines:
    """All three, and what they say of each other."""

    def __init__(self, machines: Sequence[Machine], supervisor: Supervisor) -> None:
        self.all = machines
        for machine in machines:
            supervisor.run(machine.etcd)
        # The first one makes the cluster, and the others copy it.
        supervisor.run(machines[0].patroni)
        wait_for(self.primary, PATIENCE)
        for machine in machines[1:]:
            supervisor.run(machine.patroni)
        wait_for(self.is_whole, PATIENCE)

    def members(self) -> list[dict[str, Any]]:
        """Of Patroni's cluster, as the first machine that answers tells it."""
        for machine in self.all:
            if isinstance(told := machine.ask("GET", "/cluster"), dict) and told.get("members"):
                return list(told["members"])
        return []

    def _in_role(self, *roles: str) -> Iterator[Machine]:
        for member in self.members():
            if member["role"] in roles and member["state"] in {"running", "streaming"}:
                yield next(machine for machine in self.all if machine.name == member["name"])

    def primary(self) -> Machine | None:
        return next(self._in_role("leader"), None)

    def standby(self) -> Machine:
        """The one for which COMMIT waits."""
        return next(self._in_role("sync_standby"))

    def replica(self) -> Machine:
        """The other standby."""
        return next(self._in_role("replica"))

    def is_whole(self) -> bool:
        """Whether there are a primary and two standbys that follow it, and one of them may take its place.

        Asks each machine, for what is known of the others may be old.
        """
        told = [machine.ask("GET", "/patroni") for machine in self.all]
        if not all(isinstance(one, dict) and one.get("state") == "running" for one in told):
            return False
        # For a while after a loss of etcd.
        if any(one.get("failsafe_mode_is_active") for one in told):
            return False
        following = [one.get("replication", []) for one in told if one["role"] == "primary"]
        states = [sorted((standby["sync_state"], standby["state"]) for standby in standbys) for standbys in following]
        roles = sorted(member["role"] for member in self.members())
        return (
            states == [[("async", "streaming"), ("sync", "streaming")]]
            and roles == ["leader", "replica", "sync_standby"]
            and len({one["timeline"] for one in told}) == 1
        )
