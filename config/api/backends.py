"""The backends that settings name: CREDENTIAL_BACKEND, QUOTA_BACKEND and REPRESENTATION_BACKEND."""

from functools import lru_cache
from typing import Any

from django.utils.module_loading import import_string


@lru_cache(maxsize=16)
def get_backend(path: str) -> Any:
    """The one instance of a backend."""
    return import_string(path)()
