"""Follows docs/deploy.md, backup.md and upgrade.md in a bare Debian 13, with what they print and nothing else.

`make test-deploy`, as root, in about six minutes. debootstrap makes the Debian, as a chroot in a network namespace of
its own, where the domain leads to loopback. Two programs are not Debian's: systemctl.py and certbot.py beside this
file.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.service import CHECKOUT

HERE = Path(__file__).parent
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
NAMESPACE = "users-service-debian"
DOMAIN, EMAIL, PASSWORD = "api.example.com", "ann@example.com", "four plain words here"
ADMINISTRATOR, STRANGER = "203.0.113.7", "198.51.100.9"
VALUES = {"DOMAIN": DOMAIN, "EMAIL": EMAIL, "ADMINISTRATOR_ADDRESS": ADMINISTRATOR, "REPOSITORY": "/srv/service.git"}
_BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


class BrokenPromiseError(Exception):
    """Something that the documents promise did not happen."""


class Debian:
    """A Debian in a folder.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, script: str, *, given: str = "", is_online: bool = False, **variables: str) -> str:
        """Runs a script of bash, line by line as it stands there. Returns what it printed.

        Args:
            script: the lines.
            given: the standard input.
            is_online: whether it needs the network of this machine, for packages.
            variables: of its shell.

        Raises:
            BrokenPromiseError: a line failed.
        """
        print(*(f"  {line}" for line in script.splitlines()), sep="\n", flush=True)
        command = ["chroot", str(self.root), "/bin/bash", "-euo", "pipefail", "-c", script]
        passed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": "/root", "LANG": "C.UTF-8"}
        done = subprocess.run(
            command if is_online else ["ip", "netns", "exec", NAMESPACE, *command],
            env=environment | passed | VALUES | {"DEBIAN_FRONTEND": "noninteractive"} | variables,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BrokenPromiseError(f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path
        file.write_text(text)
        file.chmod(mode)

    def read_log(self) -> str:
        """What the units have written."""
        return (self.root / "var/log/units.log").read_text()

    def find_processes(self) -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "root").readlink() == self.root:
                    found.append(int(process.name))
            except OSError:
                continue
        return found


@contextmanager
def bare_debian(folder: Path) -> Iterator[Debian]:
    """A Debian 13 as its installer leaves it, but for systemd, which does not run."""
    root = folder / "debian"
    subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=ca-certificates", "trixie", root, MIRROR],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    debian = Debian(root)
    # No package starts anything: that is done below, by what stands in for systemd.
    debian.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
    debian.write("etc/hosts", f"127.0.0.1 localhost {DOMAIN}\n")
    for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(Path("/") / name, root / name)
    if (own := Path("/usr/local/share/ca-certificates")).exists():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    subprocess.run(["git", "clone", "--quiet", "--bare", CHECKOUT, root / "srv/service.git"], check=True)
    with ExitStack() as stack:
        for name in ("proc", "dev"):
            subprocess.run(["mount", "--bind", f"/{name}", root / name], check=True)
            stack.callback(subprocess.run, ["umount", root / name], check=True)
        subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
        stack.callback(subprocess.run, ["ip", "netns", "delete", NAMESPACE], check=True)
        subprocess.run(["ip", "-n", NAMESPACE, "link", "set", "lo", "up"], check=True)
        for address in (ADMINISTRATOR, STRANGER):
            subprocess.run(["ip", "-n", NAMESPACE, "address", "add", f"{address}/32", "dev", "lo"], check=True)
        stack.callback(end, debian)
        yield debian


def end(debian: Debian) -> None:
    """Ends what was started in a Debian."""
    deadline = time.monotonic() + 20
    while found := debian.find_processes():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.5)


def read_blocks(page: str, section: str = "") -> list[str]:
    """The commands of a page before its first section, or of a section."""
    text = (CHECKOUT / "docs" / page).read_text()
    return _BLOCK.findall(
        text.partition(f"\n## {section}")[2].partition("\n## ")[0] if section else text.partition("\n## ")[0]
    )


def expect(condition: object, promise: str) -> None:
    if not condition:
        raise BrokenPromiseError(promise)
    print(f"- {promise}", flush=True)


def deploy(debian: Debian) -> None:
    values, packages, *rest = read_blocks("deploy.md")
    expect(re.findall(r"^(\w+)=", values, re.MULTILINE) == [*VALUES], "the values to fill in are those of this trial")
    debian.run("apt-get update", is_online=True)
    debian.run(packages, is_online=True)
    for name in ("systemctl", "certbot"):
        debian.write(f"usr/local/sbin/{name}", (HERE / f"{name}.py").read_text(), 0o755)
    debian.write("usr/local/bin/client", (HERE / "client.py").read_text(), 0o755)
    debian.run("systemctl start postgresql nginx")
    for block in rest:
        told = debian.run(block, given=f"{PASSWORD}\n")
    expect("No problems found." in told, "doctor finds nothing wrong")
    seen = json.loads(debian.run(f"client {DOMAIN} {EMAIL} '{PASSWORD}' {ADMINISTRATOR} {STRANGER}"))
    expect(seen["title"] == "Overview", "the administrator signs in over TLS")
    expect(403 not in seen["statuses"][ADMINISTRATOR], "the administrator's address reaches all")
    expect(seen["statuses"][STRANGER] == [403, 403, 403, 200], "a stranger reaches the API alone")
    lines = [json.loads(line) for line in debian.read_log().splitlines() if line.startswith("{")]
    expect(any("serves https://" in line.get("message", "") for line in lines), "the log says which release serves")
    (logged,) = [line for line in lines if line.get("route") == "/versions" and line["address"] == STRANGER]
    proxy = (debian.root / "var/log/nginx/access.log").read_text()
    expect(f"request_id={logged['request_id']}" in proxy, "both logs have the Request-Id and the client's address")
    debian.run("systemctl start users-service-purge")


def back_up(debian: Debian) -> None:
    (backup,) = read_blocks("backup.md", "Back up to any moment")
    (restore,) = read_blocks("backup.md", "Restore to a moment")
    install, rest = backup.split("\n", 1)
    debian.run(install, is_online=True)
    debian.run(rest)
    create = "/opt/users-service/deploy/manage create_user {} --name Name"
    debian.run(create.format("kept@example.com"), given=f"{PASSWORD}\n")
    time.sleep(2)
    moment = time.strftime("%F %T+00", time.gmtime())
    time.sleep(2)
    debian.run(create.format("undone@example.com"), given=f"{PASSWORD}\n")
    debian.run(restore, MOMENT=moment)
    query = (
        "runuser -u postgres -- psql --no-align --tuples-only --command 'SELECT email FROM users_user ORDER BY id' {}"
    )
    expect(debian.run(query.format("service")).split() == [EMAIL, "kept@example.com"], "the moment is restored")
    for block in read_blocks("backup.md", "A dump, for a small database"):
        debian.run(block)
    expect(debian.run(query.format("restored")).split() == [EMAIL, "kept@example.com"], "the dump is restored")


def upgrade(debian: Debian) -> None:
    (block,) = read_blocks("upgrade.md")
    commit(debian, "config/__init__.py", 'VERSION = "', 'VERSION = "9.')
    debian.run(block, is_online=False)
    release = debian.run("git -C /opt/users-service rev-parse HEAD").strip()
    expect(f"({release}) serves" in debian.read_log(), "the new release serves, and the log says so")
    commit(debian, "config/settings.py", "WORKERS = ", "WORKERS = unknown or ")
    try:
        debian.run(block)
    except BrokenPromiseError as broken:
        expect("Job for users-service.service failed" in str(broken), "a release that does not start fails the reload")
    else:
        raise BrokenPromiseError("A release that does not start was taken.")
    expect(debian.run(f"client {DOMAIN} {EMAIL} '{PASSWORD}'"), "the release of before goes on")


def commit(debian: Debian, file: str, before: str, after: str) -> None:
    """Makes a further commit in the repository that the machine was cloned from."""
    git = "git -c user.name=Ann -c user.email=ann@example.com"
    debian.run(
        f"rm -rf /tmp/next; {git} clone --quiet /srv/service.git /tmp/next; cd /tmp/next; "
        f"sed -i '0,/^{before}/s//{after}/' {file}; {git} commit --quiet --all --message 'Next'; {git} push --quiet"
    )


def find_reason() -> str:
    """Why this machine cannot do it; empty where it can."""
    if os.geteuid():
        return "It needs root."
    missing = [name for name in ("debootstrap", "ip") if not shutil.which(name)]
    if missing:
        return f"There is no {missing[0]} on this machine."
    # What a container is often refused; it takes a mount, too.
    made = subprocess.run(["ip", "netns", "add", f"{NAMESPACE}-probe"], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"No network namespace can be made: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", f"{NAMESPACE}-probe"], check=True)
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/trixie/Release", timeout=20).close()  # noqa: S310 - the address of a mirror
    except OSError as error:
        return f"{MIRROR} cannot be reached: {error}"
    return ""


def main() -> int:
    if reason := find_reason():
        print(f"Skipped: {reason}")
        return 0
    with TemporaryDirectory(dir="/var/tmp") as name, bare_debian(Path(name)) as debian:
        try:
            for step in (deploy, back_up, upgrade):
                began = time.monotonic()
                step(debian)
                print(f"{step.__name__}: {time.monotonic() - began:.0f} s", flush=True)
        except BrokenPromiseError as broken:
            print(
                f"FAILED: {broken}", debian.read_log()[-3000:] if (debian.root / "var/log/units.log").exists() else ""
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
