"""What `manage.py serve` becomes once its workers are started: a process that waits for them, and does nothing else.

It has replaced itself by an interpreter that loads almost nothing, since whatever it kept would count beside the
workers' memory: so it imports neither a package nor anything else of the service. It holds the sockets that the
workers listen on. When a worker dies, connections wait on its socket for the one that takes its place.

Signals are blocked here and waited for, so that none is lost, also while the process replaces itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # without the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

SECONDS_TO_STOP = 20
# Trying again and again to start a worker that cannot start shall not take a whole core.
SECONDS_AFTER_AN_ERROR = 1
STOPPING = {signal.SIGTERM, signal.SIGINT}
AWAITED = STOPPING | {signal.SIGCHLD, signal.SIGALRM}

Workers = dict[int, int]


def fork(job: Callable[[], object], lifeline: int) -> int:
    """Runs a job in a process of its own, with the signals unblocked that are AWAITED here. Returns its id.

    Its standard input is the lifeline, a pipe that nobody writes to: it ends when the supervisor does.
    """
    if pid := os.fork():
        return pid
    status = 1
    try:
        # Ctrl-C goes to all processes of a group. The supervisor alone shall hear it, and stop its workers in order.
        os.setpgid(0, 0)
        os.dup2(lifeline, 0)
        for number in AWAITED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
        job()
        status = 0
    except BaseException:  # noqa: BLE001 - told as the interpreter would at its end
        sys.excepthook(*sys.exc_info())
    finally:
        # Whatever the parent cleans up on its way out is the parent's to clean up.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def become(
    workers: list[tuple[int, int]], lifeline: tuple[int, int], port: int, lock: int | None, folder: str
) -> NoReturn:
    """Replaces this process, whose children the workers are, by their supervisor.

    Args:
        workers: the process id of each, or 0 for one that is to be started, and the socket that it listens on.
        lifeline: the pipe whose reading end the workers were given.
        port: a socket that reserves the port until the end.
        lock: on the embedded database, which is left at the end.
        folder: a folder of files, which is removed at the end.
    """
    held = [*lifeline, port] + ([] if lock is None else [lock])
    for descriptor in {*(socket for _, socket in workers), *held}:
        os.set_inheritable(descriptor, True)
    pairs = ",".join(f"{pid}:{socket}" for pid, socket in workers)
    command = [sys.executable, *sys.orig_argv[1:]]
    arguments = ["-I", "-S", __file__, pairs, ",".join(map(str, held)), folder, *command]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - a program and arguments of one's own


def main(pairs: str, held: str, folder: str, *command: str) -> None:
    given = [(int(pid), int(socket)) for pid, _, socket in (pair.partition(":") for pair in pairs.split(","))]
    sockets = {socket for _, socket in given}
    lifeline, end, port, *lock = map(int, held.split(","))
    for descriptor in {*sockets, lifeline, end, port, *lock}:
        os.set_inheritable(descriptor, False)
    # The terminal going away ends nothing.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in AWAITED:
        # Where a signal is ignored by default, it would not be waited for either.
        signal.signal(number, lambda *_: None)
    workers = {pid: socket for pid, socket in given if pid}
    supervise(workers, [(socket, 0) for pid, socket in given if not pid], lifeline, command)
    stop(workers, sockets)
    _clean_up(folder, *lock)


def _clean_up(folder: str, lock: int | None = None) -> None:
    # Nobody counts memory any more.
    import shutil
    from pathlib import Path

    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.set_inheritable(lock, True)
        os.chdir(Path(__file__).parents[1])
        os.execv(sys.executable, [sys.executable, "-m", "config.embedded", str(lock)])  # noqa: S606


def supervise(workers: Workers, missing: list[tuple[int, int]], lifeline: int, command: tuple[str, ...]) -> None:
    """Starts a worker for each that is missing or dies, however often, until the signal to stop.

    Args:
        workers: the sockets by process id; kept up to date.
        missing: sockets without a worker, and the seconds to wait before its start.
    """
    while True:
        for pid, exit_code in _dead():
            if pid in workers:
                socket = workers.pop(pid)
                # By itself, and not killed: most likely it could not start, and nor can the next.
                failed = exit_code > 0
                if failed:
                    _stop_listening(socket)
                missing.append((socket, SECONDS_AFTER_AN_ERROR if failed else 0))
        while missing:
            socket, pause = missing[0]
            try:
                pid = fork(lambda: _start(command, socket, pause), lifeline)  # noqa: B023 - run before it changes
            except OSError:
                # The machine has no room for a process; in a second it may.
                signal.alarm(1)
                break
            workers[pid] = socket
            del missing[0]
        if signal.sigwait(AWAITED) in STOPPING:
            return


def _stop_listening(descriptor: int) -> None:
    """Sends new connections to the other workers, until one listens on this socket again, as Granian does."""
    if sys.platform == "linux":  # elsewhere it is the socket of them all
        import socket

        with socket.socket(fileno=os.dup(descriptor)) as listening:
            try:
                listening.shutdown(socket.SHUT_RD)
            except OSError:
                return  # it does not listen


def _start(command: tuple[str, ...], socket: int, pause: int) -> NoReturn:
    time.sleep(pause)
    os.set_inheritable(socket, True)
    os.execv(command[0], [*command, "--skip-checks", "--socket", str(socket)])  # noqa: S606


def stop(workers: Workers, sockets: set[int]) -> None:
    """Lets the workers finish what they began, and kills those that take too long. Further signals change nothing."""
    for socket in sockets:
        os.close(socket)
    _send(workers, signal.SIGTERM)
    deadline = time.monotonic() + SECONDS_TO_STOP
    signal.alarm(SECONDS_TO_STOP)
    while workers:
        signal.sigwait({signal.SIGCHLD, signal.SIGALRM})
        for pid, _ in _dead():
            workers.pop(pid, None)
        if time.monotonic() >= deadline:
            _send(workers, signal.SIGKILL)


def _send(workers: Workers, number: int) -> None:
    for pid in workers:
        os.kill(pid, number)


def _dead() -> Iterator[tuple[int, int]]:
    """The children that have died since the last call, with their exit codes; that of a killed one is negative."""
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found[0], os.waitstatus_to_exitcode(found[1])
    except ChildProcessError:
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
