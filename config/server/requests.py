"""A request as ASGI brings it: its WSGI environment (PEP 3333), its body, and whom it counts for."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings

from config.http.client_address import find_address, get_network
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.middleware import SECRET_PARAMETER
from config.http.request_limits import MAX_SHORT_BODY, body_too_long
from config.http.request_state import RequestState

Environ = dict[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# Servers that take the first of two and others that take the last would disagree about the request.
ONCE = ("HTTP_HOST", "CONTENT_TYPE", "CONTENT_LENGTH")
_VERSIONS = {"1": "1.0"}


def build_environ(scope: Mapping[str, Any]) -> tuple[Environ, list[str]]:
    """The environment of a request without its body, and the names of headers that occur too often.

    Values of headers are opaque bytes (RFC 9110, section 5.5), which Latin-1 keeps one by one.
    """
    server, server_port = scope.get("server") or ("", None)
    client, _ = scope.get("client") or ("", None)
    version = scope["http_version"]
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": _decode_path(scope),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "REMOTE_ADDR": client,
        "SERVER_NAME": server,
        "SERVER_PORT": str(server_port or ""),
        "SERVER_PROTOCOL": f"HTTP/{_VERSIONS.get(version, version)}",
        "wsgi.url_scheme": scope["scheme"],
    }
    repeated = _add_headers(environ, scope["headers"])
    environ.setdefault("HTTP_HOST", "")
    return environ, repeated


def _add_headers(environ: Environ, headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Adds headers; repeated ones are joined (RFC 9110, section 5.3), cookies by their own separator."""
    repeated: dict[str, None] = {}
    for name, value in headers:
        variable = _variable(name)
        if not variable:
            continue
        text = value.decode("latin-1")
        if variable not in environ:
            environ[variable] = text
            continue
        environ[variable] += (";" if variable == "HTTP_COOKIE" else ", ") + text
        if variable in ONCE:
            repeated[variable] = None
    return [variable.removeprefix("HTTP_").replace("_", "-").title() for variable in repeated]


# Clients send the same few names again and again; they may also make up as many as they like.
@lru_cache(maxsize=256)
def _variable(name: bytes) -> str:
    """The name of a header in the environment; none with `_`, since `X_API_Key` and `X-API-Key` would be the same."""
    if b"_" in name:
        return ""
    variable = name.decode("latin-1").replace("-", "_").upper()
    return variable if variable in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{variable}"


def _decode_path(scope: Mapping[str, Any]) -> str:
    """The path; an encoded slash stays encoded, because it separates nothing (RFC 3986, section 2.2)."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if b"%" not in raw:
        return raw.decode("latin-1")
    encoded = raw.replace(b"%2F", b"%252F").replace(b"%2f", b"%252f")
    return unquote_to_bytes(encoded).decode("latin-1")


# --- Its body: no longer than its endpoint can use, and not too many long ones at once

# From the end of the headers to the end of the body, however it trickles in; and for requests under way when the worker
# is about to end. Less than `serve` gives its workers, so that a stalled body cuts off none of its other requests.
MAX_SECONDS = 15.0
# The event loop is woken for each, also for one of a single byte.
MAX_PIECES = 16 * 1024
# The total of the bodies that a worker is receiving, except those whose length says that they are short. Their senders
# are not known yet, and there may be thousands. Of a body that is refused for its size, this much is still read: many
# clients read the response only after they have sent everything, and find a broken pipe if the server closes early.
MAX_HELD_BYTES = 64 * 1024 * 1024


class Bodies:
    """Receives the bodies of a worker."""

    def __init__(self) -> None:
        self._held_bytes = 0

    async def receive(self, environ: Environ, receive: Receive, limit: int) -> bytes:
        """A body, whole and no longer than the limit.

        Args:
            environ: of its request.
            receive: ASGI's.
            limit: in bytes.

        Raises:
            DomainError: PAYLOAD_TOO_LARGE, VALIDATION_ERROR for a body that is late or without its end, or
                SERVICE_UNAVAILABLE.
        """
        given = environ.get("CONTENT_LENGTH")
        length = None if given is None else int(given)
        if length == 0:
            return b""
        if length is not None and length > limit:
            raise body_too_long(limit)
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await self._receive(receive, length, limit)
        except TimeoutError:
            message = f"The body did not arrive within {MAX_SECONDS:g} seconds."
            raise invalid(Detail("", message)) from None

    async def throw_away(self, receive: Receive) -> None:
        """Reads what is left of the body of a request that is answered already, up to a bound."""
        with suppress(DomainError, TimeoutError):
            async with asyncio.timeout(MAX_SECONDS):
                await self._receive(receive, None, 0)

    async def _receive(self, receive: Receive, length: int | None, limit: int) -> bytes:
        """Reads a body piece by piece, and throws away what is over the limit, up to a bound."""
        is_short = length is not None and length <= MAX_SHORT_BODY
        body = bytearray()
        held = size = count = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    # The client has left, or sends something that is no longer a body.
                    raise invalid(Detail("", "The body is incomplete."))
                piece = message.get("body", b"")
                size += len(piece)
                count += 1
                if size <= limit:
                    body += piece
                    if not is_short:
                        held += len(piece)
                        self._held_bytes += len(piece)
                        if self._held_bytes > MAX_HELD_BYTES:
                            raise build_overload("Too many large bodies are being received.")
                is_whole = size == length or not message.get("more_body")
                if is_whole or size > MAX_HELD_BYTES or count > MAX_PIECES:
                    break
        finally:
            self._held_bytes -= held
        if size > limit:
            raise body_too_long(limit)
        if count > MAX_PIECES:
            raise DomainError(ErrorCode.PAYLOAD_TOO_LARGE, f"The body comes in more than {MAX_PIECES} pieces.")
        return bytes(body)


async def wait_until_left(receive: Receive) -> None:
    """Ends when the client has left. What it still sends is nothing that anybody waits for."""
    while (await receive())["type"] != "http.disconnect":
        pass


# For clients that are refused because the service is busy.
RETRY_AFTER_SECONDS = 1


def build_overload(message: str) -> DomainError:
    """A SERVICE_UNAVAILABLE for a request that is not run because too many others are."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return DomainError(ErrorCode.SERVICE_UNAVAILABLE, f"{message} Try again.", headers=headers)


# --- Whom a request is counted for before its credential is checked: a user, or an address

MAX_KNOWN = 10_000
_NONE = (None, None, None, ())
_IN_QUERY = re.compile(rf"(?:\A|&){SECRET_PARAMETER}=([^&]*)")


class Callers:
    """The users of credentials that were good when this process last saw them.

    It grants nothing: it only says whose requests are counted together while they are under way. An unknown credential
    counts for the address that it comes from, so that nobody gains by inventing some.
    """

    def __init__(self) -> None:
        # Keyed by a hash that differs from process to process, so that no secret is kept.
        self._users: OrderedDict[int, Any] = OrderedDict()

    def identify(self, environ: Environ) -> tuple[Hashable, int | None]:
        """Whom a request counts for, and by what its credential, if it has one, is known here."""
        credential = _get_credential(environ)
        if credential is not None:
            user = self._users.get(credential)
            if user is not None:
                return user, credential
        forwarded, remote = environ.get("HTTP_X_FORWARDED_FOR"), environ.get("REMOTE_ADDR", "")
        return get_network(find_address(forwarded, remote, settings.TRUSTED_PROXIES)), credential

    def learn(self, credential: int | None, state: RequestState) -> None:
        """Remembers whether a request's credential was accepted.

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
