"""Between the server and its engine: every call goes through, and rules may harm it on the way."""

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

    BEFORE = "before the engine hears of it"
    AFTER = "after the engine has done it, before its answer is passed on"
    DURING = "while its answer is passed on, piece by piece"


class Effect(Enum):
    """What becomes of the call."""

    PASS = "goes on"
    CUT = "the connection is broken"
    REFUSE = "is answered 500, and never reaches the engine"


@dataclass(slots=True)
class Rule:
    """Harm calls whose `METHOD /path` matches. `act` is called each time and says what becomes of the call.

    `times`: how often at most; None without an end. `done` counts.
    """

    pattern: str
    moment: Moment
    act: Callable[[], Effect]
    times: int | None = 1
    done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, call: str, moment: Moment) -> Effect:
        """What becomes of the call."""
        if moment is not self.moment or not re.search(self.pattern, call):
            return Effect.PASS
        with self._lock:
            if self.times is not None and self.done >= self.times:
                return Effect.PASS
            self.done += 1
        return self.act()


@dataclass(frozen=True, slots=True)
class _Head:
    """The first part of a message: its first line, and how its body ends."""

    raw: bytes
    first: str
    length: int
    chunked: bool
    counted: bool


class Proxy:
    """Listens on a unix socket; one thread a connection."""

    def __init__(self, path: Path, engine: str, *rules: Rule) -> None:
        self.url = f"unix://{path}"
        self.rules = list(rules)
        self._engine = engine.removeprefix("unix://")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(path))
        self._door.listen(128)
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, socket.socket(socket.AF_UNIX) as engine:
                engine.connect(self._engine)
                asks, answers = _Stream(client), _Stream(engine)
                while self._exchange(asks, answers):
                    pass
        except OSError:
            return  # one of the two has gone; the other one learns of it by the end of its connection

    def _exchange(self, asks: _Stream, answers: _Stream) -> bool:
        """One call; False when the connection ends with it."""
        head = asks.read_head()
        if head is None:
            return False
        call = " ".join(head.first.split(" ")[:2])
        effect = self._apply(call, Moment.BEFORE)
        if effect is Effect.REFUSE:
            return _refuse(asks, head)
        if effect is Effect.CUT:
            return False
        answers.send(head.raw)
        for piece in asks.read_body(head):
            answers.send(piece)
        answer = answers.read_head()
        if answer is None or self._apply(call, Moment.AFTER) is Effect.CUT:
            return False
        asks.send(answer.raw)
        for piece in answers.read_body(answer, until_end=True):
            asks.send(piece)
            if self._apply(call, Moment.DURING) is Effect.CUT:
                return False
        return answer.chunked or answer.counted

    def _apply(self, call: str, moment: Moment) -> Effect:
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
            if not self._more():
                return None
        raw, _, self._held = self._held.partition(b"\r\n\r\n")
        text = raw.decode("latin-1")
        length = re.search(r"(?im)^content-length: *(\d+)", text)
        chunked = re.search(r"(?im)^transfer-encoding: *chunked", text) is not None
        empty = re.match(r"HTTP/1\.\d (1\d\d|204|304)", text) is not None
        counted = length is not None or empty
        return _Head(raw + b"\r\n\r\n", text.split("\r\n")[0], int(length[1]) if length else 0, chunked, counted)

    def read_body(self, head: _Head, *, until_end: bool = False) -> Iterator[bytes]:
        """The pieces of a body as they come; `until_end` when one without a length ends with the connection."""
        if head.chunked:
            yield from self._chunks()
        elif head.counted or not until_end:
            yield from self._counted(head.length)
        else:
            while self._held or self._more():
                piece, self._held = self._held, b""
                yield piece

    def _counted(self, length: int) -> Iterator[bytes]:
        while length > 0:
            if not self._held and not self._more():
                return
            piece, self._held = self._held[:length], self._held[length:]
            length -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            while b"\r\n" not in self._held:
                if not self._more():
                    return
            line, _, self._held = self._held.partition(b"\r\n")
            yield line + b"\r\n"
            size = int(line.split(b";")[0], 16)
            yield from self._counted(size + 2)
            if size == 0:
                return

    def _more(self) -> bool:
        data = self._side.recv(_CHUNK)
        self._held += data
        return bool(data)


def _refuse(asks: _Stream, head: _Head) -> bool:
    for _ in asks.read_body(head):
        pass
    body = b'{"message":"the test refuses"}'
    asks.send(
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return True
