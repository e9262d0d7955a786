"""Requests as Granian hands them over, to an application in this process."""

import asyncio
import json

from config.server.rsgi import Application


class Received:
    """A request as Granian hands it over, and the response."""

    def __init__(self, path, key="", body=None, **headers):
        self.path, self.query_string, self.method = path, "", "GET" if body is None else "POST"
        self.sent = b"" if body is None else json.dumps(body).encode()
        self.headers = {"host": "testserver", "content-length": str(len(self.sent)), "content-type": "application/json"}
        self.headers |= {"x-api-key": key} if key else {}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.client, self.server, self.authority = "127.0.0.1:40000", "127.0.0.1:8000", "testserver"
        self.http_version, self.scheme = "1.1", "http"

    async def __call__(self):
        return self.sent

    def response_bytes(self, status, headers, body):
        self.status, self.headers, self.body = status, dict(headers), json.loads(body)


def respond_to(*requests):
    async def receive_all():
        application = Application()
        application.__rsgi_init__(asyncio.get_running_loop())
        await asyncio.gather(*(application.__rsgi__(request, request) for request in requests))

    asyncio.run(receive_all())
    return requests
