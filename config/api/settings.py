"""Django's settings without the proxy that Django puts before each look at them, which costs two calls."""

from typing import Any

from django.conf import settings as django_settings


class _Settings:
    def __init__(self) -> None:
        # What Django looked up it keeps here, and throws away itself when a setting is overridden.
        self.__dict__ = vars(django_settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(django_settings, name)


settings: Any = _Settings()
