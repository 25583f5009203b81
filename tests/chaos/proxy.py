"""A proxy between the server and its engine: rules cut, refuse or delay the calls that pass through it."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_CHUNK = 65536


class Moment(Enum):
    """When a rule applies to a call."""

    BEFORE = "before the engine gets the call"
    AFTER = "after the engine has done it, before the proxy passes its answer on"
    DURING = "after each piece of the answer that the proxy passes on"


class Effect(Enum):
    """What the proxy does with the call."""

    PASS = "passes it on"
    CUT = "breaks the connection"
    REFUSE = "answers 500; the engine does not get the call"


@dataclass(slots=True)
class Rule:
    """What the proxy does with some calls."""

    pattern: str  # regular expression for `METHOD /path`
    moment: Moment
    act: Callable[[], Effect]  # called each time
    times: int | None = 1  # how often the rule applies at most; None: always
    done: int = 0  # how often it has applied
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, call: str, moment: Moment) -> Effect:
        """Return what the proxy does with the call at this moment."""
        if moment is not self.moment or not re.search(self.pattern, call):
            return Effect.PASS
        with self._lock:
            if self.times is not None and self.done >= self.times:
                return Effect.PASS
            self.done += 1
        return self.act()


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of an HTTP message."""

    raw: bytes
    first: str  # line
    length: int  # bytes of the body; 0 without Content-Length
    chunked: bool  # the body has chunks
    counted: bool  # the length of the body is known


class Proxy:
    """Listens on a unix socket, or on a TCP port, with one thread for each connection.

    Args:
        path: of the socket; None: a free port of this machine.
        engine: the address of the engine.
        rules: what happens to calls.
    """

    def __init__(self, path: Path | None, engine: str, *rules: Rule) -> None:
        self.rules = list(rules)
        self._engine = engine.removeprefix("unix://")
        self._listener = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX)
        self._listener.bind(("127.0.0.1", 0) if path is None else str(path))
        port = self._listener.getsockname()[1] if path is None else 0
        self.url = f"tcp://127.0.0.1:{port}" if path is None else f"unix://{path}"
        self._listener.listen(128)
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, socket.socket(socket.AF_UNIX) as engine:
                engine.connect(self._engine)
                requests, answers = _Stream(client), _Stream(engine)
                while self._pass_call(requests, answers):
                    pass
        except OSError:
            return  # one side has closed; closing the other connection tells the other side

    def _pass_call(self, requests: _Stream, answers: _Stream) -> bool:
        """Pass one call on; return False when the connection ends with it."""
        head = requests.read_head()
        if head is None:
            return False
        call = " ".join(head.first.split(" ")[:2])
        effect = self._apply_rules(call, Moment.BEFORE)
        if effect is Effect.REFUSE:
            return _refuse(requests, head)
        if effect is Effect.CUT:
            return False
        answers.send(head.raw)
        for piece in requests.read_body(head):
            answers.send(piece)
        answer = answers.read_head()
        if answer is None or self._apply_rules(call, Moment.AFTER) is Effect.CUT:
            return False
        requests.send(answer.raw)
        if call.startswith("HEAD "):  # its answer has no body, even if its head names a length
            return True
        for piece in answers.read_body(answer, until_end=True):
            requests.send(piece)
            if self._apply_rules(call, Moment.DURING) is Effect.CUT:
                return False
        return answer.chunked or answer.counted

    def _apply_rules(self, call: str, moment: Moment) -> Effect:
        for rule in self.rules:
            effect = rule.apply(call, moment)
            if effect is not Effect.PASS:
                return effect
        return Effect.PASS


class _Stream:
    """One side of a connection, read message by message."""

    def __init__(self, side: socket.socket) -> None:
        self._side = side
        self._held = b""

    def send(self, data: bytes) -> None:
        self._side.sendall(data)

    def read_head(self) -> _Head | None:
        while b"\r\n\r\n" not in self._held:
            if not self._receive():
                return None
        raw, _, self._held = self._held.partition(b"\r\n\r\n")
        text = raw.decode("latin-1")
        length = re.search(r"(?im)^content-length: *(\d+)", text)
        chunked = re.search(r"(?im)^transfer-encoding: *chunked", text) is not None
        empty = re.match(r"HTTP/1\.\d (1\d\d|204|304)", text) is not None
        counted = length is not None or empty
        return _Head(raw + b"\r\n\r\n", text.split("\r\n")[0], int(length[1]) if length else 0, chunked, counted)

    def read_body(self, head: _Head, *, until_end: bool = False) -> Iterator[bytes]:
        """Give the pieces of a body as they come; with `until_end`, a body without length ends with the connection.

        Raises:
            ConnectionError: this side closed in the middle of it. The engine holds a container locked until the rest
                of an archive has come, so the proxy closes the other side, too.
        """
        if head.chunked:
            yield from self._read_chunks()
        elif head.counted or not until_end:
            yield from self._read_bytes(head.length)
        else:
            while self._held or self._receive():
                piece, self._held = self._held, b""
                yield piece

    def _read_bytes(self, length: int) -> Iterator[bytes]:
        while length > 0:
            if not self._held:
                self._receive_more()
            piece, self._held = self._held[:length], self._held[length:]
            length -= len(piece)
            yield piece

    def _read_chunks(self) -> Iterator[bytes]:
        while True:
            while b"\r\n" not in self._held:
                self._receive_more()
            line, _, self._held = self._held.partition(b"\r\n")
            yield line + b"\r\n"
            size = int(line.split(b";")[0], 16)
            yield from self._read_bytes(size + 2)
            if size == 0:
                return

    def _receive_more(self) -> None:
        if not self._receive():
            raise ConnectionError("one side closed in the middle of a body")

    def _receive(self) -> bool:
        data = self._side.recv(_CHUNK)
        self._held += data
        return bool(data)


def _refuse(requests: _Stream, head: _Head) -> bool:
    for _ in requests.read_body(head):
        pass
    body = b'{"message":"the test refuses"}'
    requests.send(
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return True
