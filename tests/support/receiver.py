"""An HTTP server on loopback that receives webhooks, and does with each what a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What came, and what is answered."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)  # of the next answers; then 200
    location: str = ""  # of an answer that is a redirect
    received: list[Received] = field(default_factory=list)
    hangs: bool = False  # requests get no answer until `released`
    drips: bool = False  # requests get an answer byte by byte without an end
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    """Serve on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, dict(self.headers), body))
            if receiver.hangs:
                receiver.released.wait()
                return
            while receiver.drips and not receiver.released.wait(0.02):
                self.wfile.write(b"H")
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that hangs up is not an error here
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
