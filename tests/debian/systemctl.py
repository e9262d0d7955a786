#!/usr/bin/python3
"""Stands in for systemctl in a chroot, where systemd does not run: does what the units say, with Debian's Python alone.

A service is started by its own command, as its user, with its environment and without capabilities, and is told to be
ready by sd_notify. What else the unit closes is tested by systemd-analyze (tests/deploy/test_files.py).
"""

import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

UNITS, RUN, LOG = Path("/etc/systemd/system"), Path("/run"), Path("/var/log/units.log")
SECONDS = 120
DEBIAN = {
    ("start", "postgresql"): "pg_ctlcluster 17 main start",
    ("stop", "postgresql"): "pg_ctlcluster 17 main stop",
    ("start", "nginx"): "nginx",
    ("reload", "nginx"): "nginx -s reload",
}
CLOSED = ["setpriv", "--init-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]


class Unit:
    def __init__(self, name: str) -> None:
        self.name = name.removesuffix(".service")
        lines = (UNITS / f"{self.name}.service").read_text().splitlines()
        self.lines = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
        self.pid, self.notified = RUN / f"{self.name}.pid", RUN / f"{self.name}.notify"

    def get(self, key: str) -> list[str]:
        return [value for name, value in self.lines if name == key]

    def build_environment(self) -> dict[str, str]:
        found = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": str(self.notified)}
        found |= dict(one.split("=", 1) for line in self.get("Environment") for one in shlex.split(line))
        for file in self.get("EnvironmentFile"):
            found |= dict(line.split("=", 1) for line in Path(file).read_text().splitlines() if "=" in line)
        return found

    def spawn(self, command: str) -> "subprocess.Popen[bytes]":
        user = pwd.getpwnam(*self.get("User"))
        account = [*CLOSED, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
        words = shlex.split(command.removeprefix("+"))
        (folder,) = self.get("WorkingDirectory") or ["/"]
        with LOG.open("ab") as log:
            return subprocess.Popen(
                words if command.startswith("+") else [*account, *words],
                cwd=folder,
                env=self.build_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, command: str) -> None:
        if self.spawn(command).wait():
            sys.exit(f"Job for {self.name}.service failed.")

    def listen(self) -> socket.socket:
        self.notified.unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.bind(str(self.notified))
        self.notified.chmod(0o666)
        made.settimeout(SECONDS)
        return made

    def start(self) -> None:
        if self.get("Type") == ["oneshot"]:
            for command in [*self.get("ExecStartPre"), *self.get("ExecStart")]:
                self.run(command)
            return
        with self.listen() as notifications:
            process = self.spawn(*self.get("ExecStart"))
            self.pid.write_text(str(process.pid))
            if self.get("Type") == ["notify"]:
                wait_until_ready(notifications)

    def stop(self) -> None:
        # One that has ended by itself is what systemd would start again.
        with suppress(ProcessLookupError):
            os.kill(int(self.pid.read_text()), signal.SIGTERM)
        while Path(f"/proc/{self.pid.read_text()}").exists():
            time.sleep(0.1)

    def reload(self) -> None:
        with self.listen() as notifications:
            for command in self.get("ExecReload"):
                self.run(command.replace("$MAINPID", self.pid.read_text()))
            wait_until_ready(notifications)


def wait_until_ready(notifications: socket.socket) -> None:
    while True:
        told = notifications.recv(4096).decode()
        if "READY=1" in told:
            print(told.partition("STATUS=")[2])
            return


def main(action: str, names: list[str]) -> None:
    for name in names:
        if name.endswith(".timer"):
            assert action == "enable"
            assert (UNITS / name).exists()
        elif action == "restart":
            main("stop", [name])
            main("start", [name])
        elif command := DEBIAN.get((action, name)):
            subprocess.run(shlex.split(command), check=True, stdin=subprocess.DEVNULL)
        elif action != "daemon-reload":
            unit = Unit(name)
            {"enable": unit.start, "start": unit.start, "stop": unit.stop, "reload": unit.reload}[action]()


main(sys.argv[1], [name for name in sys.argv[2:] if name != "--now"])
