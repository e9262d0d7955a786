"""Sends what is in the outbox, and what is due to webhooks."""

import signal
from argparse import SUPPRESS, ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from django.conf import settings
from django.db import Error, close_old_connections

from config.management.command import ServiceCommand
from config.outbox import deliver
from config.postgresql.transactions import is_unavailable
from config.server.processes import end_with_parent

SECONDS_BETWEEN_LOOKS = 0.5


class Command(ServiceCommand):
    help = (
        "Sends outgoing mail, and events to webhooks, until Ctrl-C or SIGTERM, then finishes what it sends and exits. "
        "Several instances can run at the same time. No message is lost if one is killed. `make run` starts it, too."
    )
    example = "manage.py deliver --once"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="send what is due now, then exit")
        # The `serve` that started it; without that, it ends.
        parser.add_argument("--parent", type=int, help=SUPPRESS)

    def handle(self, *, once: bool, parent: int | None, **options: object) -> None:
        stopped = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        if parent:
            end_with_parent(parent)
        with ThreadPoolExecutor(1, "webhooks") as pool:
            webhooks = pool.submit(_send_to_webhooks, stopped, once=once)
            try:
                _send_messages(stopped, once=once)
            finally:
                if not once:
                    stopped.set()
        webhooks.result()


def _send_messages(stopped: Event, *, once: bool) -> None:
    while not stopped.is_set():
        close_old_connections()
        try:
            deliver(stopped.is_set)
        except Error as error:
            if once or not is_unavailable(error):
                raise
        if once:
            return
        stopped.wait(SECONDS_BETWEEN_LOOKS)


def _send_to_webhooks(stopped: Event, *, once: bool) -> None:
    if not settings.EVENTS:
        return
    from config.events.webhooks import deliverer

    try:
        deliverer.deliver(stopped.is_set, once=once)
    except BaseException:
        # The process ends, and its supervisor starts another one.
        stopped.set()
        raise
