"""Notifies systemd that the service runs, and of the result of a reload."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Sends a state by the protocol of sd_notify(3), such as `READY=1`, if systemd has started the service.

    Args:
        state: the assignments, a line each.
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    # A missing listener is no reason to end.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection, suppress(OSError):
        # An abstract address is written with @ in the place of its NUL.
        connection.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        connection.sendall(state.encode())
