"""Imports users in batches of a thousand lines, reads them back as one stream, compares checksum and memory.

`make test-bulk USERS=1000000`, or `python -m tests.bulk 1000000`. The service and its data are its own.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection

import psutil

from benchmarks.measuring import tree
from tests.service import Service, ask, temporary_copy

LINES = 1_000
FIELDS = ("name", "email", "role", "status", "external_id")
# Of a password that nobody has.
HASH = "$2b$12$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui"
# Megabytes that all processes of the service may grow by, themselves and PostgreSQL's beside its shared buffers.
MAX_GROWTH = 50
MAX_SECONDS_OF_A_MILLION = 30.0
MAX_SECONDS_OF_AN_IMPORT = 600.0
SECONDS_BETWEEN_LOOKS = 0.2


class Memory(threading.Thread):
    """Watches what the processes of a service have for themselves, in megabytes.

    Attributes:
        before: at the beginning.
        most: the most that was seen since.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._stopped = pid, threading.Event()
        self.before = self.most = self._measure()

    def _measure(self) -> float:
        used = 0.0
        for process in tree(self._pid):
            try:
                # The process that delivers is still starting when the service answers, and has no part in this.
                if "postgres" not in process.name() and "deliver" not in process.cmdline():
                    used += process.memory_full_info().uss / 1e6
            except psutil.Error:
                continue
        return used

    def run(self) -> None:
        while not self._stopped.wait(SECONDS_BETWEEN_LOOKS):
            self.most = max(self.most, self._measure())

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    @property
    def growth(self) -> float:
        return self.most - self.before


def get_processor_seconds(pid: int) -> float:
    """What the processes of a service have worked, which is the same beside other work of the machine."""
    times = [process.cpu_times() for process in tree(pid)]
    return sum(each.user + each.system for each in times)


def make_lines(numbers: Iterable[int]) -> Iterator[bytes]:
    for number in numbers:
        # Texts of several scripts, and of what NDJSON and CSV have to escape.
        user = {"name": f'Ünïcode "{number}", 王小\\明 =1+1', "email": f"bulk{number}@example.org", "role": "user"}
        more = {"status": "inactive" if number % 3 else "active", "external_id": f"crm-{number}", "password_hash": HASH}
        yield json.dumps({**user, **more}, ensure_ascii=False).encode()


def summarize(lines: Iterable[bytes]) -> tuple[int, str]:
    """How many users there are, and the checksum of their fields in this order."""
    digest, count = hashlib.sha256(), 0
    for line in lines:
        user = json.loads(line)
        digest.update(json.dumps([user[name] for name in FIELDS]).encode())
        count += 1
    return count, digest.hexdigest()


def send(service: Service, users: int) -> None:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    password = next(line for line in service.lines if line.startswith("Password: ")).removeprefix("Password: ")
    pair = b64encode(f"admin@example.com:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {pair}", "Content-Type": "application/x-ndjson"}
    for first in range(0, users, LINES):
        body = b"\n".join(make_lines(range(first, min(first + LINES, users))))
        connection.request("POST", "/api/v2/users", body, {**headers, "Idempotency-Key": f"batch-{first}"})
        with connection.getresponse() as response:
            text = response.read()
            if response.status != 201:
                raise SystemExit(f"{response.status}: {text[:500].decode()}")


def read(service: Service, key: str, after: int) -> Iterator[bytes]:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    path = f"/api/v2/users?id[gt]={after}&fields={','.join(FIELDS)}"
    connection.request("GET", path, headers={"X-API-Key": key, "Accept": "application/x-ndjson"})
    with connection.getresponse() as response:
        if response.status != 200:
            raise SystemExit(f"{response.status}: {response.read(500).decode()}")
        yield from response


def find_last(service: Service, key: str) -> int:
    return int(ask(service, "/api/v2/users?order=desc&limit=1", X_API_Key=key).json()["data"][0]["id"])


def main(users: int) -> int:
    with temporary_copy("service") as copy:
        service = Service(copy)
        try:
            key = copy.manage("create_api_key", "admin@example.com").stdout.strip()
            last = find_last(service, key)
            writing = Memory(service.process.pid)
            writing.start()
            began, worked = time.monotonic(), get_processor_seconds(service.process.pid)
            send(service, users)
            sent, worked = time.monotonic() - began, get_processor_seconds(service.process.pid) - worked
            writing.stop()
            reading = Memory(service.process.pid)
            reading.start()
            began = time.monotonic()
            found = summarize(read(service, key, last))
            took = time.monotonic() - began
            reading.stop()
        finally:
            service.stop()
    equal = found == summarize(make_lines(range(users)))
    print(f"Sent {users:,} users in {sent:.1f} s with {worked:.1f} s of processors,", end=" ")
    print(f"memory {writing.before:.0f} MB and {writing.growth:+.0f}.")
    print(f"Read {found[0]:,} in {took:.1f} s, memory {reading.before:.0f} MB and {reading.growth:+.0f}.")
    print(f"Checksums: {'equal' if equal else 'DIFFERENT'}.")
    fast = took <= max(1.0, MAX_SECONDS_OF_A_MILLION * users / 1e6)
    fast = fast and sent <= max(10.0, MAX_SECONDS_OF_AN_IMPORT * users / 1e6)
    return 0 if equal and fast and max(writing.growth, reading.growth) <= MAX_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
