"""Whom a request counts for before anybody looked up its credential: what waits, waits for a user or for an address."""

import re
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from config.http.client_address import client_address, get_network
from config.http.middleware import SECRET_PARAMETER
from config.http.request_state import RequestState
from config.server.environ import Environ

MAX_KNOWN = 10_000
_NONE = (None, None, None, ())
_IN_QUERY = re.compile(rf"(?:\A|&){SECRET_PARAMETER}=([^&]*)")


class Callers:
    """The users of credentials that were good when this process last saw them.

    It allows nothing: it only tells whose requests are counted together while they are under way. An unknown credential
    counts for the address that it comes from, so that nobody gets more by making some up.
    """

    def __init__(self) -> None:
        # By a hash that differs from process to process: no secret is kept.
        self._users: OrderedDict[int, Any] = OrderedDict()

    def identify(self, environ: Environ) -> tuple[Hashable, int | None]:
        """Whom a request counts for, and by what its credential, if it has one, is known here."""
        credential = _get_credential(environ)
        if credential is not None:
            user = self._users.get(credential)
            if user is not None:
                return user, credential
        return _get_network(environ.get("REMOTE_ADDR", ""), environ.get("HTTP_X_FORWARDED_FOR", "")), credential

    def learn(self, credential: int | None, state: RequestState) -> None:
        """Remembers what became of a credential in a request that was run.

        Args:
            credential: by which it is known here.
            state: of the request, in which its caller was noted.
        """
        if credential is None or state.quota_fields is None:
            return
        user = state.user_id
        if user is None:
            self._users.pop(credential, None)
        elif self._users.get(credential) != user:
            self._users[credential] = user
            if len(self._users) > MAX_KNOWN:
                self._users.popitem(last=False)


def _get_credential(environ: Environ) -> int | None:
    get, query = environ.get, environ["QUERY_STRING"]
    in_query = tuple(_IN_QUERY.findall(query)) if SECRET_PARAMETER in query else ()
    given = (get("HTTP_AUTHORIZATION"), get("HTTP_X_API_KEY"), get("HTTP_COOKIE"), in_query)
    return None if given == _NONE else hash(given)


@lru_cache(maxsize=1024)
def _get_network(remote: str, forwarded: str) -> str:
    request = SimpleNamespace(META={"REMOTE_ADDR": remote, "HTTP_X_FORWARDED_FOR": forwarded})
    return get_network(client_address(request))
