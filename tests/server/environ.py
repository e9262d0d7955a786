"""Requests as the server hands them to the application."""

import json
from io import BytesIO


def build_environ(path, token, body=None, key=""):
    """The environment of a request as `config.server.requests` makes it of what a client of the benchmarks sends."""
    path, _, query = path.partition("?")
    content = b"" if body is None else json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": "GET" if body is None else "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": f"/api/v1{path}",
        "QUERY_STRING": query,
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "https",
        "wsgi.input": BytesIO(content),
        "CONTENT_LENGTH": str(len(content)),
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT": "application/json",
        "HTTP_AUTHORIZATION": f"Bearer {token}",
    }
    if body is not None:
        environ["CONTENT_TYPE"] = "application/json"
    return environ | ({"HTTP_IDEMPOTENCY_KEY": key} if key else {})
