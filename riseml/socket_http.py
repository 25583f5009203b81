"""HTTP over a unix socket, with the standard library alone: how a command reaches the user's own server.

`riseml.exchange` reaches every other server with httpx. To import httpx and to make its client takes about 60 ms of
processor time, which was half of what `riseml status` took; http.client takes 12 ms.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Protocol
from urllib.parse import urlencode

_PIECE = 1 << 16  # bytes read at once
_MOST_IDLE = 4  # connections that are kept; a command asks from few threads

QueryValue = str | int | float | bool | None


class AnswerCut(Exception):
    """The connection broke before the answer was complete."""


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


def make_request(  # noqa: PLR0913  # one parameter for each part of a request
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

    def __init__(self, answer: HTTPResponse) -> None:
        self.status_code = answer.status
        self.is_success = 200 <= answer.status < 300
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self._answer = answer
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

    def is_complete(self) -> bool:
        """Return True when nothing of the answer is left in the connection, which can be used again."""
        return (self._answer.isclosed() or self._answer.length == 0) and not self._answer.will_close

    def _read_piece(self) -> bytes:
        with _translate_errors():
            piece = self._answer.read1(_PIECE)
            if not piece and self._answer.length:
                raise IncompleteRead(b"", self._answer.length)
            return piece


class SocketConnections:
    """The connections to one server; several threads use them at the same time.

    Args:
        dial: opens a connection, and makes sure whose it is.
    """

    def __init__(self, dial: Callable[[], socket.socket]) -> None:
        self._dial = dial
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._busy: set[HTTPConnection] = set()

    def close(self) -> None:
        """Close all connections; what other threads read from them ends. The next request opens a new one."""
        with self._lock:
            idle, busy = list(self._idle), list(self._busy)
            self._idle.clear()
            self._busy.clear()
        for connection in busy:
            _shut_down(connection)  # the thread that reads closes it
        for connection in idle:
            connection.close()

    @contextmanager
    def open_answer(self, request: SocketRequest, timeout: float) -> Iterator[SocketAnswer]:
        """Send a request and give its answer; an answer that is not read to its end costs the connection.

        Args:
            request: what is sent.
            timeout: seconds that the server may be silent, each time.

        Raises:
            AnswerCut: the connection broke.
            AnswerOverdue: the server was silent for too long.
        """
        connection = self._take(timeout)
        is_usable = False
        try:
            is_sent = _send(connection, request)
            with _translate_errors():
                received = connection.getresponse()
            with received:  # which may hold the socket alone from now on
                if received.length is None and not received.chunked:
                    raise AnswerCut("the answer does not say where it ends")  # riseml's server always does
                answer = SocketAnswer(received)
                yield answer
                is_usable = is_sent and answer.is_complete()
        finally:
            self._give_back(connection, is_usable=is_usable)

    def _take(self, timeout: float) -> HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
                if connection is not None:
                    self._busy.add(connection)
            if connection is None:
                door = self._dial()
                door.settimeout(timeout)
                connection = HTTPConnection("riseml")
                connection.auto_open = 0
                connection.sock = door
                with self._lock:
                    self._busy.add(connection)
                return connection
            if _is_quiet(connection.sock):
                connection.sock.settimeout(timeout)
                return connection
            self._give_back(connection, is_usable=False)

    def _give_back(self, connection: HTTPConnection, *, is_usable: bool) -> None:
        with self._lock:
            is_ours = connection in self._busy
            self._busy.discard(connection)
            if is_ours and is_usable and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _send(connection: HTTPConnection, request: SocketRequest) -> bool:
    """Send a request, and return whether all of it was sent: a server may refuse before it has read the whole body.

    Raises:
        AnswerOverdue: the server took nothing for too long.
        AnswerCut: the connection broke before the head of the request was sent.
    """
    with _translate_errors():
        connection.putrequest(request.method, request.path)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        if not isinstance(request.body, bytes):
            connection.putheader("Transfer-Encoding", "chunked")
        elif request.body or request.method not in ("GET", "HEAD"):
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders()
    pieces = [request.body] if isinstance(request.body, bytes) else _make_chunks(request.body)
    for piece in pieces:  # its own errors are not those of the connection
        try:
            connection.send(piece)
        except TimeoutError as error:
            raise AnswerOverdue from error
        except OSError:
            return False
    return True


def _make_chunks(body: Iterable[bytes]) -> Iterator[bytes]:
    for piece in body:
        if piece:
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def _is_quiet(door: socket.socket) -> bool:
    """Return False when the server has closed an idle connection, or sent something that no request asked for."""
    door.settimeout(0)
    try:
        door.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _shut_down(connection: HTTPConnection) -> None:
    """End a connection, so that a thread that reads from it goes on."""
    door: socket.socket | None = connection.sock
    if door is not None:
        with suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise AnswerOverdue from error
    except (HTTPException, OSError, ValueError) as error:
        raise AnswerCut(str(error) or type(error).__name__) from error


def _list_query(params: Mapping[str, QueryValue | Sequence[QueryValue]]) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        yield from ((name, _write_value(one)) for one in values)


def _write_value(value: QueryValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _write_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
