"""Requests as an ASGI server hands them over, to an application in this process that has an event loop of its own."""

import asyncio
import json

from django.utils.datastructures import CaseInsensitiveMapping

from config.asgi import django
from config.server.application import Application


class Received:
    """A request as an ASGI server hands it over, and the response."""

    def __init__(self, path, key="", body=None, **headers):
        self.sent = b"" if body is None else json.dumps(body).encode()
        given = {"host": "testserver"}
        if self.sent:
            given |= {"content-length": str(len(self.sent)), "content-type": "application/json"}
        given |= {"x-api-key": key} if key else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET" if body is None else "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 40000),
            "server": ("127.0.0.1", 8000),
        }

    async def receive(self):
        return {"type": "http.request", "body": self.sent, "more_body": False}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = CaseInsensitiveMapping(
                (name.decode(), value.decode("latin-1")) for name, value in message["headers"]
            )
        else:
            self.body = json.loads(message["body"])


def respond_to(*requests):
    async def receive_all():
        application = Application(django)
        await application.start(asyncio.get_running_loop())
        try:
            await asyncio.gather(*(application(each.scope, each.receive, each.send) for each in requests))
        finally:
            await application.stop()

    asyncio.run(receive_all())
    return requests
