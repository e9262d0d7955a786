"""Django's settings, for what reads them at each request: a look into Django's own takes a call of two functions."""

from typing import Any

from django.conf import settings as _settings


class CachedSettings:
    """Settings that become attributes once they are read, like `rest_framework.settings`."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_settings, name)
        setattr(self, name, value)
        return value


settings = CachedSettings()
