"""System checks that name what runs on the reference instead of the fast path, and what that costs.

Those that close the fast path to every request run before every command; the others with `manage.py check` alone.
"""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, register
from django.db import connections
from django.db.models import signals
from django.urls import URLPattern, URLResolver, get_resolver

from config.api.viewsets import ResourceViewSet
from config.fastpath import handler
from config.fastpath.serializers import find_unknown_fields
from config.fastpath.views import get_parts

THREAD_LOCALS = (
    "Requests of one thread run side by side on the fast path: keep the value of a request in a ContextVar or in "
    "asgiref.local.Local; a threading.local is shared by them."
)


@register
def full_stack(**options: object) -> list[CheckMessage]:
    """What sends every request through the full stack of middlewares."""
    return [
        Info(
            f"Every request takes the full stack: {obstacle}.",
            hint=f"It costs up to 10 × a read. {THREAD_LOCALS}",
            id="fastpath.I001",
        )
        for obstacle in handler.find_obstacles()
    ]


def viewsets(**options: object) -> list[CheckMessage]:
    """The viewsets of which some actions run on the reference."""
    return list(_check_viewsets())


def _check_viewsets() -> Iterator[CheckMessage]:
    for view_class in sorted(get_viewsets(), key=lambda each: each.__name__):
        for part, hooks in get_parts(view_class).items():
            if hooks and part.__name__ != "Create":
                message = f"{view_class.__name__} overrides {', '.join(hooks)}: {part.__name__} runs on the reference."
                yield Info(message, hint="It costs 2 to 6 × such a request.", id="fastpath.I002")
        serializer_class = view_class.serializer_class
        if unknown := find_unknown_fields(serializer_class):
            message = f"{serializer_class.__name__} is not compiled: {', '.join(unknown)}."
            yield Info(message, hint="It costs up to 6 × a page of its rows.", id="fastpath.I003")


def receivers(**options: object) -> list[CheckMessage]:
    """Receivers that make rows be read and added in Django's way, whichever model they are for."""
    found: list[CheckMessage] = []
    for name in ("pre_init", "post_init", "pre_save", "post_save"):
        for key, *_ in getattr(signals, name).receivers:
            message = f"A receiver of {name} ({key[0]}) is connected: rows are made and added by the reference."
            found.append(
                Info(
                    message,
                    hint="It costs 2 to 3 × a POST, and pre_init and post_init a page, too.",
                    id="fastpath.I004",
                )
            )
    return found


@register
def backend(**options: object) -> list[CheckMessage]:
    """Refuses another database backend: the fast path sends its statements by its own."""
    engines = {alias: each["ENGINE"] for alias, each in connections.settings.items()}
    return [
        Error(
            f"The database {alias} uses {engine}: the fast path needs config.fastpath.postgresql.",
            hint="Run with FAST_PATH=false, or set the ENGINE.",
            id="fastpath.E001",
        )
        for alias, engine in engines.items()
        if engine != "config.fastpath.postgresql"
    ]


def get_viewsets() -> set[Any]:
    """The viewsets of the URL map."""
    found: set[Any] = set()

    def collect(patterns: list[URLPattern | URLResolver]) -> None:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                collect(pattern.url_patterns)
            elif issubclass(view_class := getattr(pattern.callback, "cls", object), ResourceViewSet):
                found.add(view_class)

    collect(get_resolver(settings.ROOT_URLCONF).url_patterns)
    return found
