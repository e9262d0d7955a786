from collections.abc import Iterable, Mapping

from oauth2_provider.scopes import BaseScopes
from oauthlib.common import Request

from accounts.models import Application
from config.api.principal import SCOPE_TEXTS


class Scopes(BaseScopes):
    """The service's scopes. An application may request those that it is allowed, and gets none by default."""

    def get_all_scopes(self) -> Mapping[str, str]:
        return SCOPE_TEXTS

    def get_available_scopes(
        self, application: Application | None = None, request: Request | None = None, *args: object, **kwargs: object
    ) -> Iterable[str]:
        # An application keeps scopes that the service had once, without EVENTS for one.
        return [scope for scope in SCOPE_TEXTS if application is None or scope in application.allowed_scopes]

    def get_default_scopes(self, *args: object, **kwargs: object) -> Iterable[str]:
        return ()
