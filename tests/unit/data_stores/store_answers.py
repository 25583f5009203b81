"""A web server that answers as stores do, well and badly."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from tests.support.authority import Pair

LIST = (
    "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated><Contents><Key>x/file</Key><Size>6</Size>"
    '<ETag>"e1"</ETag><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>'
)
HEADERS = {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "ETag": '"e1"'}
WHOLE = {"Content-Range": "bytes 0-5/6"}
REFUSED = re.compile(r"refused/(\d+)/([A-Za-z]+)")


class Answers(BaseHTTPRequestHandler):
    """Answers by the first part of the path, and notes what it was asked."""

    asked: list[dict[str, str]]

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.asked.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
        if "secret" in self.path:
            self.answer(206, b"SECRET", {**HEADERS, **WHOLE})
        elif self.path.startswith("/away"):
            self.answer(503, b"")
        elif self.path.startswith("/elsewhere"):
            self.answer(302, b"", {"Location": "/secret"})
        elif self.path.startswith("/cut"):
            status = 206 if "Range" in self.headers else 200
            self.answer(status, b"abc", {**HEADERS, **WHOLE}, claimed=6)
        elif refused := REFUSED.search(unquote(self.path)):
            error = f"<Error><Code>{refused[2]}</Code><Message>the store's own words</Message></Error>"
            self.answer(int(refused[1]), error.encode(), {"Content-Type": "application/xml"})
        elif self.path.startswith("/unmarked") and "list-type" in self.path:
            self.answer(200, LIST.replace('<ETag>"e1"</ETag>', "").encode(), {"Content-Type": "application/xml"})
        elif self.path.startswith("/unmarked"):
            self.answer(412 if "If-Match" in self.headers else 206, b"abcdef", {**HEADERS, **WHOLE})
        elif "list-type" in self.path:
            self.answer(200, LIST.encode(), {"Content-Type": "application/xml"})
        else:
            self.answer(404, b"")

    do_HEAD = do_GET

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None, claimed: int = 0) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(claimed or len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True


@contextmanager
def serve(pair: Pair | None = None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Run a web server, over TLS where it has a certificate; yield its address and what it was asked."""
    asked: list[dict[str, str]] = []
    handler: Any = type("Handler", (Answers,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.cert, pair.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()
