"""Programs of the cluster are started again when they end, and not after they were stopped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from config.local.account import get_accessible_folder
from tests.cluster.programs import SECONDS_UNTIL_RESTART, Program, Room, Supervisor
from tests.service import wait_for


@pytest.fixture
def room() -> Iterator[Room]:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Room(get_accessible_folder(Path(name) / "room"))


def pid_of(program: Program) -> int | None:
    return program.process.pid if program.process else None


def test_program_that_ends_is_started_again_and_stopped_at_the_end(room: Room) -> None:
    program = Program(room, "sleep", ["sleep", "100"], {})
    with Supervisor() as supervisor:
        supervisor.run(program)
        first = pid_of(program)
        program.signal(signal.SIGKILL)
        wait_for(lambda: pid_of(program) not in {None, first})
        second = pid_of(program)
    assert pid_of(program) is None
    assert not psutil.pid_exists(second or 0)


def test_program_that_was_stopped_stays_so(room: Room) -> None:
    program = Program(room, "sleep", ["sleep", "100"], {})
    with Supervisor() as supervisor:
        supervisor.run(program)
        program.stop()
        with pytest.raises(AssertionError, match="waited in vain"):
            wait_for(lambda: program.process, 2 * SECONDS_UNTIL_RESTART)


def test_program_that_is_frozen_is_stopped_too(room: Room) -> None:
    program = Program(room, "sleep", ["sleep", "100"], {})
    with Supervisor() as supervisor:
        supervisor.run(program)
        program.signal(signal.SIGSTOP)
    assert pid_of(program) is None
