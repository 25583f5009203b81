"""Where the launchers of a gang meet, and the rendezvous server of Horovod: a part of `rank_launcher` in the first job.

A launcher joins with `JOIN /<node>`, and then sends one JSON object a line: `{"reached": 1}` when its processes have
ended the first line of `run`, or `{"failed": ...}`. It gets `{"go": 1}` when all have, and `{"cause": ...}` once.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterable
from typing import Any

ENDED = 1 << 30  # the line that a job has reached when all of its processes have ended well
LONGEST_VALUE = 1 << 20  # bytes
MOST_VALUES = 1 << 17
GONE = "its processes are gone, or the connection to it is"
ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 30), (socket.TCP_KEEPCNT, 9))
"""After 60 s of silence the kernel sends a probe every 30 s, which keeps firewalls from dropping the connection. A host
that has not answered for 330 s is gone: the server counted it as lost before that.
"""


def keep_alive(link: socket.socket) -> None:
    """Let the kernel detect that the other end of a silent connection is gone."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ALIVE:
        link.setsockopt(socket.IPPROTO_TCP, option, value)


class Rendezvous:
    """The shared state of the launchers of a gang; the first launcher keeps it."""

    def __init__(self, nodes: int, size: int) -> None:
        self.nodes = nodes
        self.size = size
        self.lock = threading.RLock()
        self.links: dict[int, socket.socket] = {}  # node -> its connection
        self.reached: dict[int, int] = {}  # node -> the line that it has reached
        self.released = -1  # the line that all have reached
        self.cause: object = None  # what failed first
        self.values: dict[str, bytes] = {}  # Horovod's values, by path
        self.read: dict[str, set[str]] = {}  # scope -> ranks that have read all of its values
        self.initialized: set[int] = set()  # ranks that have called hvd.init() in this line
        self.met = size < 2  # there was a line in which all ranks called hvd.init()

    def serve_launcher(self, node: int, link: socket.socket, lines: Iterable[bytes]) -> None:
        """Read the messages of one launcher until its connection ends. Each job joins only once."""
        with self.lock:
            if not 0 <= node < self.nodes or node in self.links:
                return
            self.links[node] = link
        with contextlib.suppress(OSError, ValueError):
            for line in lines:
                self.handle_message(node, json.loads(line.decode()))
        with self.lock:
            self.links.pop(node, None)
            if self.released < ENDED:
                self.fail({"node": node, "text": GONE, "lost": True})

    def handle_message(self, node: int, message: dict[str, Any]) -> None:
        """Handle one message of a launcher."""
        with self.lock:
            if "failed" in message:
                self.fail(message["failed"])
                return
            self.reached[node] = message["reached"]
            line = min(self.reached.values())
            if len(self.reached) == self.nodes and line > self.released and self.cause is None:
                self.end_line(line)

    def end_line(self, line: int) -> None:
        """Let all jobs go on, unless only some of the ranks have met, or none has in any line."""
        absent = sorted(set(range(self.size)) - self.initialized)
        if self.initialized and absent:
            self.fail({"node": 0, "text": f"other ranks called hvd.init(), and not {', '.join(map(str, absent))}"})
            return
        self.met = self.met or not absent
        if line == ENDED and not self.met:
            text = "no process called hvd.init() of a Horovod with Gloo: each of the {} was alone"
            self.fail({"node": 0, "text": text.format(self.size)})
            return
        self.initialized.clear()
        self.values.clear()
        self.read.clear()
        self.released = line
        self.send({"go": line})

    def fail(self, cause: object) -> None:
        """Send the first failure to all launchers; later failures are its consequences."""
        if self.cause is None:
            self.cause = cause
            self.send({"cause": cause})

    def send(self, message: object) -> None:
        """Send a message to all connected launchers."""
        for link in list(self.links.values()):
            with contextlib.suppress(OSError):
                link.sendall(json.dumps(message).encode() + b"\n")

    def put(self, path: str, value: bytes) -> bool:
        """Keep a value of Horovod, and note its rank. Return False if there are too many values."""
        with self.lock:
            if len(self.values) >= MOST_VALUES:
                return False
            self.values[path] = value
            rank = re.match(r"/global[^/]*/(?:rank_)?(\d+)$", path)
            if rank and int(rank[1]) < self.size:
                self.initialized.add(int(rank[1]))
            return True

    def drop(self, path: str) -> None:
        """Note that a rank has read all values of a scope; forget them once all its ranks have."""
        scope, _, key = path.rpartition("/")
        with self.lock:
            read = self.read[scope] = {*self.read.get(scope, ()), key}
            paths = [name for name in self.values if name.rpartition("/")[0] == scope]
            if read >= {rank for rank in (name.rpartition("/")[2] for name in paths) if rank.isdigit()}:
                del self.read[scope]
                for name in paths:
                    del self.values[name]


class RendezvousServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The server of the first launcher. It has a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], meeting: Rendezvous) -> None:
        self.meeting = meeting
        super().__init__(address, MeetingConnection)

    def handle_error(self, *_: object) -> None:
        """Print nothing about broken connections and invalid requests: they never cause a failure."""


class MeetingConnection(http.server.BaseHTTPRequestHandler):
    """One connection to the first launcher: of another launcher (JOIN), or of Horovod."""

    server: RendezvousServer

    def do_JOIN(self) -> None:
        keep_alive(self.connection)
        self.server.meeting.serve_launcher(int(self.path), self.connection, self.rfile)

    def do_GET(self) -> None:
        value = self.server.meeting.values.get(self.path)
        self.answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        fits = length <= LONGEST_VALUE and self.server.meeting.put(self.path, self.rfile.read(length))
        self.answer(200 if fits else 413)

    def do_DELETE(self) -> None:
        self.server.meeting.drop(self.path)
        self.answer(200)

    def answer(self, code: int, body: bytes = b"") -> None:
        self.send_response_only(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the output is that of the training."""
