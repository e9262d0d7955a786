"""Whether the time of a refused login tells why it was refused: at /api/login, by Basic, and at the token endpoint.

Asks the service itself, with the limits on guessing lifted, and interleaves the reasons, so that what else the machine
does meets all of them alike. Prints the median and the spread of each reason, and exits with 1 when two medians differ
by more than noise: more than three standard errors of their difference and more than three per cent. Wants a database
that is thrown away:

    python -m tests.plugins.postgresql python -m benchmarks.login_timing
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from itertools import combinations
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client, override_settings  # noqa: E402

from accounts.models import Application  # noqa: E402
from accounts.services import save_new_application  # noqa: E402
from users import services  # noqa: E402
from users.models import Status  # noqa: E402

TRIES = 300
WARM_UP = 10
MAX_ERRORS = 3.0
MAX_SHARE = 0.03
PASSWORD = "four plain words here"
FORM = "application/x-www-form-urlencoded"
WRONG = "not the password at all"

Try = Callable[[], None]


def main() -> None:
    call_command("migrate", verbosity=0)
    told = 0
    with override_settings(RATE_LIMIT_LOGIN_ACCOUNT=0, RATE_LIMIT_LOGIN_ADDRESS=0):
        for door, tries in doors(Client()).items():
            told += report(door, measured(tries))
    sys.exit(bool(told))


def doors(client: Client) -> Mapping[str, Mapping[str, Try]]:
    """The refusals at each door, by their reason."""
    services.create(name="Active", email="active@example.com", password=PASSWORD)
    services.create(name="Inactive", email="inactive@example.com", password=PASSWORD, status=Status.INACTIVE)
    services.create(name="Without", email="without@example.com", password=None)
    application = Application(
        name="Timing",
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris="https://client.example/callback",
    )
    save_new_application(application)
    reasons = {
        "unknown email": ("nobody@example.com", PASSWORD),
        "wrong password": ("active@example.com", WRONG),
        "inactive user": ("inactive@example.com", PASSWORD),
        "no password": ("without@example.com", PASSWORD),
    }
    clients = {"unknown client": "x" * len(application.client_id), "wrong secret": application.client_id}

    def log_in(email: str, password: str) -> Try:
        body = {"email": email, "password": password}
        return lambda: refused(client.post("/api/login", body, content_type="application/json").status_code)

    def basic(email: str, password: str) -> Try:
        headers = {"Authorization": f"Basic {b64encode(f'{email}:{password}'.encode()).decode()}"}
        return lambda: refused(client.get("/api/protected", headers=headers).status_code)

    def exchange(client_id: str) -> Try:
        form = {"grant_type": "refresh_token", "refresh_token": "none", "client_id": client_id, "client_secret": WRONG}
        return lambda: refused(client.post("/oauth/token", urlencode(form), content_type=FORM).status_code)

    return {
        "/api/login": {reason: log_in(*pair) for reason, pair in reasons.items()},
        "Basic": {reason: basic(*pair) for reason, pair in reasons.items()},
        "/oauth/token": {reason: exchange(client_id) for reason, client_id in clients.items()},
    }


def refused(status: int) -> None:
    if status != 401:
        raise SystemExit(f"401 expected, and not {status}")


def measured(tries: Mapping[str, Try]) -> Mapping[str, list[float]]:
    """Milliseconds of each try, by its reason."""
    took: dict[str, list[float]] = {reason: [] for reason in tries}
    reasons = list(tries)
    for number in range(WARM_UP + TRIES):
        # Each reason comes first as often as any other.
        for reason in reasons[number % len(reasons) :] + reasons[: number % len(reasons)]:
            start = time.perf_counter()
            tries[reason]()
            milliseconds = (time.perf_counter() - start) * 1000
            if number >= WARM_UP:
                took[reason].append(milliseconds)
    return took


def report(door: str, took: Mapping[str, list[float]]) -> int:
    """Prints a table. Returns how many pairs of reasons can be told apart."""
    print(f"\n{door}, {TRIES} tries each\n\n{'':16}{'median':>10}{'error':>8}{'p5':>9}{'p95':>9}   ms")
    for reason, times in took.items():
        parts = statistics.quantiles(times, n=20)
        print(
            f"{reason:16}{statistics.median(times):10.3f}{error_of_median(times):8.3f}{parts[0]:9.3f}{parts[-1]:9.3f}"
        )
    apart = [pair for pair in combinations(took, 2) if differ(took[pair[0]], took[pair[1]])]
    for one, other in apart:
        print(f"TOLD APART: {one} and {other}")
    return len(apart)


def differ(one: list[float], other: list[float]) -> bool:
    """Whether two medians differ by more than noise: beyond what chance explains, and by enough to matter."""
    medians = statistics.median(one), statistics.median(other)
    gap = abs(medians[0] - medians[1])
    return gap > MAX_ERRORS * math.hypot(error_of_median(one), error_of_median(other)) and gap > MAX_SHARE * min(
        medians
    )


def error_of_median(times: list[float]) -> float:
    """The standard error of a median, from the ranks between which it lies with a probability of 68 %."""
    ordered, reach = sorted(times), math.sqrt(len(times)) / 2
    low, high = math.floor(len(times) / 2 - reach), math.ceil(len(times) / 2 + reach)
    return (ordered[high] - ordered[low]) / 2


if __name__ == "__main__":
    main()
