"""The WSGI environment of a request (PEP 3333), made of its ASGI scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

Environ = dict[str, Any]

# Servers that take the first of two and others that take the last would disagree about the request.
ONCE = ("HTTP_HOST", "CONTENT_TYPE", "CONTENT_LENGTH")
_VERSIONS = {"1": "1.0"}


def build_environ(scope: Mapping[str, Any]) -> tuple[Environ, list[str]]:
    """The environment of a request without its body, and the names of headers that stand more often than they may.

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
    """Adds headers; repeated ones are joined (RFC 9110, section 5.3), cookies by what stands between them."""
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
    """The path; an encoded slash stays as it is, for it separates nothing (RFC 3986, section 2.2)."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if b"%" not in raw:
        return raw.decode("latin-1")
    encoded = raw.replace(b"%2F", b"%252F").replace(b"%2f", b"%252f")
    return unquote_to_bytes(encoded).decode("latin-1")
