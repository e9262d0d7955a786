from collections.abc import Iterable, Mapping
from typing import Any

from oauth2_provider.scopes import BaseScopes

from accounts.models import Application
from config.api.principal import SCOPE_TEXTS


class Scopes(BaseScopes):
    """The service's scopes; an application may ask for those that it was allowed, and gets none by default."""

    def get_all_scopes(self) -> Mapping[str, str]:
        return SCOPE_TEXTS

    def get_available_scopes(
        self, application: Application | None = None, request: Any = None, *args: Any, **kwargs: Any
    ) -> Iterable[str]:
        return SCOPE_TEXTS if application is None else application.allowed_scopes

    def get_default_scopes(self, *args: Any, **kwargs: Any) -> Iterable[str]:
        return ()
