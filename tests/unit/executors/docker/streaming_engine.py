"""An engine over HTTP on a unix socket, whose answers are lines of JSON that a test sets."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any
from urllib.parse import unquote

from riseml.executors.transports.engine_client import Engine


class StreamingEngine:
    """What the engine answers, and what it was asked."""

    def __init__(self) -> None:
        self.images: dict[str, dict[str, Any]] = {}  # inspections, by name
        self.lines: dict[str, list[dict[str, Any]]] = {}  # what `POST /path` answers, without its query
        self.brings: dict[str, list[str]] = {}  # names of images that the engine has after `POST /path`
        self.statuses: dict[str, int] = {}  # where an answer is not 200, by `POST /path`
        self.asked: list[str] = []  # `METHOD /path?query`
        self.bodies: list[bytes] = []

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        path, _, _ = target.partition("?")
        route = f"{method} {path}"
        self.asked.append(f"{method} {target}")
        self.bodies.append(body)
        if method == "GET" and path.endswith("/json"):
            name = path.removeprefix("/images/").removesuffix("/json")
            if name not in self.images:
                return 404, b'{"message": "no such image"}'
            return 200, json.dumps(self.images[name]).encode()
        if path.endswith("/tag"):
            return 201, b""
        for name in self.brings.get(route, ()):
            self.images[name] = {"Id": name, "Size": 7}
        lines = "".join(json.dumps(line) + "\n" for line in self.lines.get(route, ()))
        return self.statuses.get(route, 200), lines.encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: StreamingEngine

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        body = self._read_body()
        target = unquote(self.path).partition("/v1.41")[2]
        status, content = self.engine.answer(self.command, target, body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")  # as an engine sends what is long
        self.end_headers()
        for piece in content.splitlines(keepends=True):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_PUT = _answer


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


@contextmanager
def serve_engine() -> Iterator[tuple[StreamingEngine, Engine]]:
    """Give an engine without images, and the client of it."""
    engine = StreamingEngine()
    handler = type("Handler", (_Handler,), {"engine": engine})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "engine.sock")
        with _Server(str(path), handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            client = Engine(f"unix://{path}")
            client._version = "1.41"
            yield engine, client
            client.close()
            server.shutdown()
