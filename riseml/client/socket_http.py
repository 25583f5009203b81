"""HTTP over a unix socket, with the standard library alone: how a command reaches the user's own server.

`exchange` reaches every other server with httpx. To import httpx and to make its client takes about 60 ms of
processor time, which was half of what `riseml status` took.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol
from urllib.parse import urlencode

from riseml.base.records import dataclass
from riseml.client.answer_reader import AnswerCut, AnswerHead, AnswerReader

PATIENCE = 3.0
"""Seconds after which a user learns that a server does not answer."""

_SMALL_BODY = 1 << 14  # bytes that are sent together with the head of their request
_MOST_IDLE = 4  # idle connections that are kept; a command sends requests from few threads
_PATH = re.compile(r"/[!-~]*")  # a header must not contain a line break
_FIELD = re.compile(r"[!-~]+: [ -~\x80-\xff]*")

QueryValue = str | int | float | bool | None


class AnswerOverdue(Exception):
    """Nothing came for longer than the request allows."""


class ServerAnswer(Protocol):
    """An answer whose body may still be on its way, of this module or of httpx."""

    @property
    def status_code(self) -> int: ...

    @property
    def is_success(self) -> bool: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; a name is found in lower case."""

    def read(self) -> bytes:
        """Return the whole body."""

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the body as it comes."""

    def iter_raw(self) -> Iterator[bytes]:
        """Yield the body as it comes."""


@dataclass(frozen=True, slots=True)
class SocketRequest:
    """What is sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | Iterable[bytes]  # an iterable is sent in chunks


def make_request(
    method: str,
    path: str,
    headers: Mapping[str, str],
    *,
    params: Mapping[str, QueryValue | Sequence[QueryValue]] | None = None,
    json: object = None,
    content: bytes | Iterable[bytes] | None = None,
) -> SocketRequest:
    """Return a request.

    Args:
        method: of HTTP.
        path: quoted.
        headers: in addition to those of the body.
        params: the query; a list stands for several values of one name.
        json: the body as a value.
        content: the body as bytes, or as pieces.
    """
    if params:
        path = f"{path}?{urlencode(list(_list_query(params)))}"
    if json is not None:
        return SocketRequest(method, path, {**headers, "Content-Type": "application/json"}, _write_json(json))
    return SocketRequest(method, path, headers, b"" if content is None else content)


class SocketAnswer:
    """An answer over a unix socket.

    Raises:
        AnswerCut: every method that reads; the connection broke.
        AnswerOverdue: every method that reads; nothing came for too long.
    """

    def __init__(self, head: AnswerHead, reader: AnswerReader) -> None:
        self.status_code = head.status
        self.is_success = 200 <= head.status < 300
        self.headers = head.headers
        self._reader = reader
        self._content: bytes | None = None  # None: the body was not read as a whole

    def read(self) -> bytes:
        """Return the whole body."""
        if self._content is None:
            self._content = b"".join(self.iter_bytes())
        return self._content

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the body as it comes."""
        while piece := self._read_piece():
            yield piece

    iter_raw = iter_bytes

    def _read_piece(self) -> bytes:
        with _translate_errors():
            return self._reader.read_piece()


class _Connection:
    """One connection to the server."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reader = AnswerReader(sock)
        self.is_reused = False  # it has brought an answer before


class SocketConnections:
    """The connections to one server; several threads use them at the same time.

    Args:
        dial: opens a connection, and checks that the server belongs to this user.
    """

    def __init__(self, dial: Callable[[], socket.socket]) -> None:
        self._dial = dial
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closings = 0  # calls of `close`

    def close(self) -> None:
        """Close all connections; the requests of other threads end. The next request opens a new connection."""
        with self._lock:
            self._closings += 1
            idle = list(self._idle)
            busy = list(self._busy)
            self._idle.clear()
            self._busy.clear()
        for connection in busy:
            _shut_down(connection)  # the thread that reads from this connection closes it
        for connection in idle:
            connection.sock.close()

    @contextmanager
    def open_answer(
        self,
        request: SocketRequest,
        timeout: float,
        on_silence: Callable[[socket.socket], None] | None = None,
        patience: float | None = None,
    ) -> Iterator[SocketAnswer]:
        """Send a request and give its answer. The connection is closed when the caller does not read the answer to its
        end. A GET whose connection was idle, and closes without an answer, is sent once more on a new one: the server
        closes idle connections, and one that was stopped for a while does so when it goes on (RFC 9112, 9.3.1).

        Args:
            request: what is sent.
            timeout: seconds that the server may be silent, each time.
            on_silence: is called with the connection when no answer has begun in time; then it waits on.
            patience: seconds until then; None: `PATIENCE`.

        Raises:
            AnswerCut: the connection broke.
            AnswerOverdue: the server was silent for too long.
        """
        with self._lock:
            closings = self._closings
        connection = self._take_connection(timeout, closings)
        is_usable = False
        try:
            try:
                is_sent, head = _ask(connection, request, on_silence, patience or PATIENCE)
            except AnswerCut:
                if not connection.is_reused or request.method != "GET":
                    raise
                self._give_back(connection, is_usable=False)
                connection = self._open_connection(timeout, closings)
                is_sent, head = _ask(connection, request, on_silence, patience or PATIENCE)
            yield SocketAnswer(head, connection.reader)
            is_usable = is_sent and connection.reader.is_complete
        finally:
            self._give_back(connection, is_usable=is_usable)

    def _take_connection(self, timeout: float, closings: int) -> _Connection:
        """Return an idle connection, or open one; see `_open_connection`."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
                if connection is not None:
                    self._busy.add(connection)
            if connection is None:
                return self._open_connection(timeout, closings)
            if _is_quiet(connection.sock):
                connection.sock.settimeout(timeout)
                return connection
            self._give_back(connection, is_usable=False)

    def _open_connection(self, timeout: float, closings: int) -> _Connection:
        """Open a connection, unless `close` was called more than `closings` times before it is open.

        Raises:
            AnswerCut: it was.
        """
        connection = _Connection(self._dial())
        connection.sock.settimeout(timeout)
        with self._lock:
            if self._closings == closings:
                self._busy.add(connection)
                return connection
        connection.sock.close()
        raise AnswerCut("the connections were closed meanwhile")

    def _give_back(self, connection: _Connection, *, is_usable: bool) -> None:
        with self._lock:
            is_ours = connection in self._busy
            self._busy.discard(connection)
            if is_ours and is_usable and len(self._idle) < _MOST_IDLE:
                connection.is_reused = True
                self._idle.append(connection)
                return
        connection.sock.close()


def _ask(
    connection: _Connection,
    request: SocketRequest,
    on_silence: Callable[[socket.socket], None] | None,
    patience: float,
) -> tuple[bool, AnswerHead]:
    """Send a request and read the head of its answer; see `SocketConnections.open_answer`.

    Returns:
        True when the whole request was sent; and the head.
    """
    is_sent = _send_request(connection, request)
    with _translate_errors():
        if on_silence is not None and not _wait_for_data(connection.sock, patience):
            on_silence(connection.sock)
        return is_sent, connection.reader.read_head(request.method)


def _send_request(connection: _Connection, request: SocketRequest) -> bool:
    """Send a request. Return True when all of it was sent: a server may refuse before it has read the whole body.

    Raises:
        AnswerOverdue: the server read nothing for too long.
        AnswerCut: the connection broke before the head of the request was sent.
    """
    body = request.body
    small = body if isinstance(body, bytes) and len(body) <= _SMALL_BODY else None
    with _translate_errors():
        connection.sock.sendall(_write_head(request) + (small or b""))
    if small is not None:
        return True
    # errors of the caller's iterable are not errors of the connection
    for piece in [body] if isinstance(body, bytes) else _make_chunks(body):
        try:
            connection.sock.sendall(piece)
        except TimeoutError as error:
            raise AnswerOverdue from error
        except OSError:
            return False
    return True


def _write_head(request: SocketRequest) -> bytes:
    """Return what comes before the body of a request.

    Raises:
        ValueError: a text of the request contains a line break, which would begin another header.
    """
    fields = {"Host": "riseml", "Accept-Encoding": "identity", **request.headers}
    if not isinstance(request.body, bytes):
        fields["Transfer-Encoding"] = "chunked"
    elif request.body or request.method not in ("GET", "HEAD"):
        fields["Content-Length"] = str(len(request.body))
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if not _PATH.fullmatch(request.path) or not all(map(_FIELD.fullmatch, lines)):
        raise ValueError("a request has a character that is not allowed in a header")
    return "\r\n".join([f"{request.method} {request.path} HTTP/1.1", *lines, "\r\n"]).encode("latin-1")


def _make_chunks(body: Iterable[bytes]) -> Iterator[bytes]:
    for piece in body:
        if len(piece) > _SMALL_BODY:  # copying it takes longer than sending it separately
            yield b"%x\r\n" % len(piece)
            yield piece
            yield b"\r\n"
        elif piece:
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def _is_quiet(sock: socket.socket) -> bool:
    """Return False when the server has closed an idle connection, or has sent data without a request."""
    sock.settimeout(0)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _wait_for_data(sock: socket.socket, seconds: float) -> bool:
    """Return True once there is something to read from a connection, False when nothing came in time."""
    ready = select.poll()
    ready.register(sock, select.POLLIN)
    return bool(ready.poll(seconds * 1000))


def _shut_down(connection: _Connection) -> None:
    """End a connection, so that a thread that reads from it goes on."""
    with suppress(OSError):
        connection.sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise AnswerOverdue from error
    except (OSError, ValueError) as error:
        raise AnswerCut(str(error) or type(error).__name__) from error


def _list_query(params: Mapping[str, QueryValue | Sequence[QueryValue]]) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        yield from ((name, _write_value(item)) for item in values)


def _write_value(value: QueryValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _write_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
