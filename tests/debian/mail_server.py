#!/usr/bin/python3
"""Stands in for the operator's mail server: takes each message on port 25, and appends it to a file."""

from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

ANSWERS = {b"DATA": b"354 Go on\r\n", b"QUIT": b"221 Bye\r\n"}


class Handler(StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 localhost\r\n")
        for line in self.rfile:
            command = line[:4].upper()
            self.wfile.write(ANSWERS.get(command, b"250 OK\r\n"))
            if command == b"DATA":
                with Path("/var/lib/messages").open("ab") as file:
                    file.writelines(iter(self.rfile.readline, b".\r\n"))
                self.wfile.write(b"250 OK\r\n")


ThreadingTCPServer(("127.0.0.1", 25), Handler).serve_forever()
