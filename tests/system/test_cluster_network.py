"""Machines have network namespaces of their own where that can be, and can be cut off."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import psutil
import pytest

from config.local.account import get_accessible_folder
from tests.cluster.network import INTERFACES, LOOPBACK, NAMESPACES, Network, connect
from tests.cluster.programs import Program, Room, Supervisor
from tests.service import CHECKOUT, DEADLINE, wait_for

NAME = "service-test"


def left() -> list[Path]:
    return [path for folder in (NAMESPACES, INTERFACES) if folder.exists() for path in folder.glob(f"{NAME}*")]


def answers(address: str) -> bool:
    """Whether something is at an address, where nothing listens."""
    try:
        socket.create_connection((address, 1), timeout=0.5)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    raise AssertionError


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Waits for the same tests in other processes: a name and addresses are of one process at a time."""
    with (Path(gettempdir()) / f"{NAME}-{os.geteuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def network() -> Iterator[Network]:
    with connect(NAME) as made:
        if not made.namespaces:
            pytest.skip("This account, or this machine, cannot make network namespaces.")
        yield made
    assert left() == []


def test_machine_that_is_cut_off_answers_nobody_until_it_is_joined(network: Network) -> None:
    address, *others = network.addresses
    wait_for(lambda: all(answers(one) for one in network.addresses))
    network.cut_off(address)
    assert [answers(one) for one in (address, *others)] == [False, True, True]
    network.join(address)
    wait_for(lambda: answers(address))


def test_program_runs_in_the_namespace_as_the_account_of_its_room(network: Network) -> None:
    namespace = network.namespaces[network.addresses[0]]
    with TemporaryDirectory() as name, Supervisor() as supervisor:
        Path(name).chmod(0o711)
        room = Room(get_accessible_folder(Path(name) / "room"), namespace)
        program = supervisor.run(Program(room, "sleep", ["sleep", "100"], {}))
        process = psutil.Process(program.process.pid) if program.process else psutil.Process()
        wait_for(lambda: process.name() == "sleep")
        assert process.uids().effective == process.uids().saved == room.account[0]
        assert process.gids().effective == process.gids().saved == room.account[1]
        assert Path(f"/proc/{process.pid}/ns/net").stat().st_ino == (NAMESPACES / namespace).stat().st_ino


@pytest.mark.usefixtures("network")
def test_network_is_of_one_process_alone() -> None:
    with pytest.raises(SystemExit, match="already"), connect(NAME):
        pass


def test_what_a_killed_process_left_is_removed(network: Network) -> None:
    assert network.namespaces
    # Another name, as this process has the one of the fixture.
    code = f"from tests.cluster.network import connect\nimport os\nwith connect('{NAME}-'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False, timeout=DEADLINE)
    assert any(path.name == f"{NAME}-1" for path in left())
    with connect(f"{NAME}-") as again:
        wait_for(lambda: all(answers(address) for address in again.addresses))
    assert not any(path.name.startswith(f"{NAME}-") for path in left())


def test_loopback_where_there_is_no_program_for_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with connect(NAME) as network:
        assert network is LOOPBACK
