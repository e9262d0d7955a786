from typing import Any

from django.core.checks import register
from django.core.management.commands import check

from config.fastpath.checks import receivers, viewsets


class Command(check.Command):
    """Django's, which also names what runs on the reference instead of the fast path."""

    def handle(self, *app_labels: Any, **options: Any) -> None:
        register(viewsets)
        register(receivers)
        super().handle(*app_labels, **options)
