"""Follows docs/deploy.md, backup.md, operate.md and upgrade.md in a bare Debian 13, with what they print alone.

`make test-deploy`, as root, in about eight minutes. debootstrap makes the Debian, and systemd boots it in namespaces of
its own (boot, beside this file), where the domain leads to loopback. For what is outside, `authority` and
mail_server.py stand in.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.service import CHECKOUT, wait_for

HERE = Path(__file__).parent
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
NAME = "users-service-debian"
DOMAIN, EMAIL, PASSWORD = "api.example.com", "ann@example.com", "four plain words here"
ADMINISTRATOR, STRANGER = "203.0.113.7", "198.51.100.9"
VALUES = {
    "DOMAIN": DOMAIN,
    "EMAIL": EMAIL,
    "ADMINISTRATOR_ADDRESS": ADMINISTRATOR,
    "EMAIL_URL": "smtp://localhost",
    "REPOSITORY": "/srv/service.git",
}
START_MAIL_SERVER = "systemd-run --quiet --unit mail mail_server"
_BLOCK = re.compile(r"^ *```\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


class BrokenPromiseError(Exception):
    """Something that the documents promise did not happen."""


class Debian:
    """A Debian in a folder, once it is booted.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.init = root, 0

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
        passed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": "/root", "LANG": "C.UTF-8"}
        namespaces = ["mount", "pid", "ipc", "uts", "cgroup", "root", *([] if is_online else ["net"])]
        done = subprocess.run(
            [*self.enter(*namespaces), "--wdns=/", "/bin/bash", "-euo", "pipefail", "-c", script],
            env=environment | passed | VALUES | {"DEBIAN_FRONTEND": "noninteractive"} | variables,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BrokenPromiseError(f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def enter(self, *namespaces: str) -> list[str]:
        """The beginning of a command that is run in namespaces of this Debian."""
        return ["nsenter", f"--target={self.init}", *(f"--{name}" for name in namespaces)]

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path
        file.write_text(text)
        file.chmod(mode)

    def read_log(self) -> str:
        """What the service has written."""
        return self.run("journalctl --output cat --no-pager _SYSTEMD_UNIT=users-service.service")


def install_debian(folder: Path) -> Debian:
    """A Debian 13 as its installer leaves it."""
    root = folder / "debian"
    packages = "ca-certificates,dbus,systemd-sysv,udev"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", "trixie", root, MIRROR],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    debian = Debian(root)
    debian.write("etc/hosts", f"127.0.0.1 localhost {DOMAIN}\n::1 localhost {DOMAIN}\n")
    # What is written here need not survive a loss of power.
    debian.write("etc/dpkg/dpkg.cfg.d/unsafe", "force-unsafe-io\n")
    for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(Path("/") / name, root / name)
    if (own := Path("/usr/local/share/ca-certificates")).exists():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    subprocess.run(["git", "clone", "--quiet", "--bare", CHECKOUT, root / "srv/service.git"], check=True)
    return debian


@contextmanager
def control_group(mount: Path) -> Iterator[Path]:
    """A control group for the processes of the Debian."""
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", mount], check=True)
    group = mount / NAME
    group.mkdir(exist_ok=True)
    try:
        yield group
    finally:
        # A process that is dead holds its group a moment longer.
        wait_for(lambda: remove_groups(group))
        subprocess.run(["umount", mount], check=True)


def remove_groups(group: Path) -> bool:
    with suppress(OSError):
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
    return not group.exists()


@contextmanager
def booted(debian: Debian) -> Iterator[None]:
    """Lets a Debian run, and cuts its power at the end."""
    # Each time in a new group: the kernel kills what is started in one that it was told to kill.
    with control_group(debian.root.parent / "groups") as group:
        process = subprocess.Popen([HERE / "boot", debian.root, group], stdin=subprocess.DEVNULL)
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_for(lambda: children.read_text().strip() != "")
            debian.init = int(children.read_text())
            wait_for(lambda: Path(f"/proc/{debian.init}/comm").read_text() == "systemd\n")
            for command in ("link set lo up", *(f"address add {each}/32 dev lo" for each in (ADMINISTRATOR, STRANGER))):
                subprocess.run([*debian.enter("net"), "ip", *command.split()], check=True)
            # The bus is there a moment later.
            wait_for((Path(f"/proc/{debian.init}/root") / "run/dbus/system_bus_socket").exists)
            debian.run("systemctl is-system-running --wait || { systemctl --failed >&2; exit 1; }")
            yield
        finally:
            (group / "cgroup.kill").write_text("1")
            process.wait()


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
    debian.run(values, is_online=True)
    debian.run(packages, is_online=True)
    debian.run("apt-get install --yes --no-install-recommends pebble", is_online=True)
    for file in ("authority", "client.py", "mail_server.py"):
        debian.write(f"usr/local/bin/{Path(file).stem}", (HERE / file).read_text(), 0o755)
    debian.run(f"authority\n{START_MAIL_SERVER}")
    for block in rest:
        told = debian.run(block, given=f"{PASSWORD}\n")
    expect("No problems found." in told, "doctor finds nothing wrong")
    seen = json.loads(debian.run(f"client {DOMAIN} {EMAIL} '{PASSWORD}' {ADMINISTRATOR} ::1 {STRANGER}"))
    expect(seen["title"] == "Overview", "the administrator signs in over TLS")
    expect(seen["protocol"] == "h2", "TLS offers HTTP/2")
    read_certificate = f"openssl s_client -connect {DOMAIN}:443 2> /dev/null | openssl x509 -noout -serial"
    before = debian.run(read_certificate)
    debian.run("certbot renew --force-renewal --no-random-sleep-on-renew")
    wait_for(lambda: debian.run(read_certificate) != before)
    print("- nginx serves a certificate when it is renewed")
    expect(seen["plain"] == 403, "plain HTTP is refused")
    expect(403 not in seen["statuses"][ADMINISTRATOR], "the administrator's address reaches all")
    expect(403 not in seen["statuses"]["::1"], "nginx answers by IPv6")
    expect(seen["statuses"][STRANGER] == [403] * 6 + [200], "a stranger reaches the API alone")
    lines = [json.loads(line) for line in debian.read_log().splitlines()]
    messages = debian.root / "var/lib/messages"
    wait_for(lambda: messages.exists() and f"To: {EMAIL}" in messages.read_text())
    expect(any("serves https://" in line.get("message", "") for line in lines), "the log is JSON, and says what serves")
    expect("127.0.0.1:8000" not in str(lines[0]), "no line names an address that a client cannot use")
    (logged,) = [line for line in lines if line.get("route") == "/versions" and line["address"] == STRANGER]
    proxy = (debian.root / "var/log/nginx/access.log").read_text()
    expect(f"request_id={logged['request_id']}" in proxy, "both logs have the Request-Id and the client's address")
    debian.run("systemctl start users-service-purge")
    find_process = "systemctl show --property MainPID users-service"
    killed = debian.run(find_process)
    debian.run("systemctl kill --signal KILL --kill-whom main users-service users-service-deliver")
    # The unit is active until systemd has noticed.
    wait_for(lambda: debian.run(find_process) not in {killed, "MainPID=0\n"}, 60)
    wait_for(lambda: "active" in debian.run("systemctl is-active users-service || true").split(), 60)
    debian.run("/opt/users-service/deploy/manage doctor")
    expect_all_well(debian, "users-service-purge.timer", "certbot.timer")


def expect_all_well(debian: Debian, *timers: str) -> None:
    failed = debian.run("systemctl --failed --quiet --plain")
    expect(not failed, f"no unit has failed {failed}".strip())
    listed = debian.run("systemctl list-timers --no-pager")
    expect(all(f" {timer} " in listed for timer in timers), f"{' and '.join(timers)} will run")


def back_up(debian: Debian) -> None:
    (backup,) = read_blocks("backup.md", "Back up to any moment")
    _, restore = read_blocks("backup.md", "Restore to a moment")
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
    dump, _, load, replace = read_blocks("backup.md", "A dump, for a small database")
    debian.run(dump)
    debian.run(create.format("undone@example.com"), given=f"{PASSWORD}\n")
    debian.run(load + replace, DUMP=f"/var/backups/users-service/{time.strftime('%F', time.gmtime())}.dump")
    expect(debian.run(query.format("service")).split() == [EMAIL, "kept@example.com"], "the dump is restored")
    expect("undone@example.com" in debian.run(query.format("replaced")), "the database of before is kept")
    expect_all_well(debian, "users-service-backup.timer")


def watch(debian: Debian) -> None:
    exporters, prometheus = (block.split("\n", 1) for block in read_blocks("operate.md", "Watch it"))
    for install, _ in (exporters, prometheus):
        debian.run(install, is_online=True)
    debian.run(exporters[1])
    token = "METRICS_TOKEN=$(sed --quiet 's/^METRICS_TOKEN=//p' /etc/users-service/environment)"
    names = f"sed --in-place s/203.0.113.10/{ADMINISTRATOR}/ prometheus.yml"
    clone = "git clone --quiet /srv/service.git /srv/watched\ncd /srv/watched/deploy"
    debian.run(f"{clone}\n{names}\n{token}\n{prometheus[1]}")
    # Without what Debian's own configuration has it scrape until it is replaced.
    asked = "promtool query instant http://127.0.0.1:9090 up | grep --invert-match localhost"
    reached = f'{asked} | grep --count "=> 1 "'
    debian.run(f"timeout 90 sh -c 'until test $({reached}) = 5; do sleep 1; done'")
    print("- Prometheus reaches the service, the probe and the exporters")
    expect_all_well(debian, "users-service-purge.timer")


def come_back(debian: Debian) -> None:
    """After the power was cut."""
    debian.run(START_MAIL_SERVER)
    debian.run("/opt/users-service/deploy/manage doctor")
    expect_all_well(debian, "users-service-purge.timer", "users-service-backup.timer")


def upgrade(debian: Debian) -> None:
    """To a release that is made as CONTRIBUTING.md says, and to a commit that does not start."""
    (make_release,) = read_blocks("../CONTRIBUTING.md", "Release")
    value, *blocks = read_blocks("upgrade.md")
    block = "".join(blocks)
    commit(debian, make_release)
    debian.run(value + block)
    commit_id = debian.run("git -C /opt/users-service rev-parse HEAD").strip()
    told = f"Release 1.0.0 ({commit_id}) serves"
    expect(
        told in debian.run("systemctl status --no-pager users-service"), "the release serves, and systemctl shows it"
    )
    wait_for(lambda: told in debian.read_log())
    commit(
        debian,
        "sed -i 's/^WORKERS = /WORKERS = unknown or /' config/settings.py\n"
        "git commit --quiet --all --message 'Does not start'\ngit push --quiet",
    )
    expect_refused_reload(debian, "a release that does not start fails the reload", f"RELEASE=origin/HEAD\n{block}")
    debian.run(f"RELEASE='HEAD@{{1}}'\n{block}")
    expect(debian.run("git -C /opt/users-service rev-parse HEAD").strip() == commit_id, "one can go back")


def change_secret(debian: Debian) -> None:
    """As docs/settings.md says: a secret in a file of its own is read anew at a reload."""
    (block,) = read_blocks("settings.md", "Secrets in files")
    find_mailer = "systemctl show --property MainPID users-service-deliver"
    before = debian.run(find_mailer)
    debian.run(block)
    expect(debian.run(find_mailer) != before, "what sends mail gets the settings with the service")
    secret = (debian.root / "etc/users-service/secret_key").read_text()
    debian.write("etc/users-service/secret_key", "short\n")
    expect_refused_reload(debian, "a reload reads the file anew, and refuses a secret that is too short")
    debian.write("etc/users-service/secret_key", secret)
    debian.run("systemctl reload users-service\n/opt/users-service/deploy/manage doctor")
    accept, replace, forget = read_blocks("settings.md", "Change a key")
    sign_in = f"client {DOMAIN} {EMAIL} '{PASSWORD}'"
    debian.run(f"{accept}\n{sign_in}")
    seen = json.loads(debian.run(f"{replace}\n{sign_in}"))
    changed = (debian.root / "etc/users-service/secret_key").read_text()
    expect(seen["lasts"] and changed not in (secret, ""), "reloads replace a key, and no login ends")
    seen = json.loads(debian.run(f"{forget}\n{sign_in}"))
    expect(seen["lasts"], "a login that has been used since does not need the previous key")


def expect_refused_reload(debian: Debian, promise: str, commands: str = "systemctl reload users-service") -> None:
    # As a person who has pasted them does, it goes on after a line that fails.
    told = debian.run(f"set +e\nexec 2>&1\n{commands}\ntrue")
    expect("Job for users-service.service failed" in told, promise)
    expect(debian.run(f"client {DOMAIN} {EMAIL} '{PASSWORD}'"), "what served before goes on")


def compose(debian: Debian) -> None:
    """Docker Compose itself reads the file with the settings that the document makes; there are no images here."""
    packages, files, *_ = read_blocks("deploy.md", "In containers")
    (variables,) = re.findall("^export .+$", packages, re.MULTILINE)
    debian.run("apt-get install --yes --no-install-recommends docker-cli docker-compose", is_online=True)
    told = debian.run(f"cd /opt/users-service\n{variables}\n{files}docker compose config --format json")
    service = json.loads(told)["services"]["service"]
    expect(service["environment"]["PUBLIC_URL"] == f"https://{DOMAIN}", "Docker Compose takes compose.yaml")


def commit(debian: Debian, script: str) -> None:
    """Runs a script in a clone of the repository that the machine was installed from."""
    author = "export GIT_{AUTHOR,COMMITTER}_NAME=Ann GIT_{AUTHOR,COMMITTER}_EMAIL=ann@example.com"
    debian.run(f"rm -rf /srv/next\ngit clone --quiet /srv/service.git /srv/next\ncd /srv/next\n{author}\n{script}")


def find_reason() -> str:
    """Why this machine cannot do it; empty where it can."""
    if os.geteuid():
        return "It needs root."
    missing = [name for name in ("debootstrap", "ip") if not shutil.which(name)]
    if missing:
        return f"There is no {missing[0]} on this machine."
    # What a container is often refused.
    tried = ["unshare", "--cgroup", "--fork", "--ipc", "--mount", "--net", "--pid", "--uts"]
    tried += ["mount", "-t", "cgroup2", "cgroup2", "/mnt"]
    made = subprocess.run(tried, capture_output=True, text=True, check=False)
    if made.returncode:
        return f"systemd cannot be booted in namespaces: {made.stderr.strip()}"
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/trixie/Release", timeout=20).close()  # noqa: S310 - the address of a mirror
    except OSError as error:
        return f"{MIRROR} cannot be reached: {error}"
    return ""


def main() -> int:
    if reason := find_reason():
        print(f"Skipped: {reason}")
        return 0
    with TemporaryDirectory(dir="/var/tmp") as name:
        debian = install_debian(Path(name))
        for steps in ((deploy, back_up, watch), (come_back, upgrade, change_secret, compose)):
            with booted(debian):
                try:
                    for step in steps:
                        began = time.monotonic()
                        step(debian)
                        print(f"{step.__name__}: {time.monotonic() - began:.0f} s", flush=True)
                except BrokenPromiseError as broken:
                    print(f"FAILED: {broken}", debian.run("journalctl --no-pager --lines 40"))
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
