"""The outbox: what is to be sent is written in the transaction of what causes it, and sent by `manage.py deliver`."""

from config.outbox.delivery import Dropped, Refused, deliver

__all__ = ["Dropped", "Refused", "deliver"]
