"""Answers of HTTP/1.1, read from a connection: what riseml's own server sends, and nothing else.

http.client parses headers with the parser of e-mails and imports ssl: 12 ms of processor time, more than the rest of a
request.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from riseml.base.records import dataclass

_PIECE = 1 << 16  # bytes read at once
_LONGEST_HEAD = 1 << 16  # bytes of a status line and its headers
_LONGEST_LINE = 1 << 10  # bytes of the line before a chunk
_DIGITS = {10: "0123456789", 16: "0123456789abcdefABCDEF"}
_MOST_DIGITS = 15  # digits of a length
_NO_BODY = frozenset({204, 304})  # status codes whose answers have none


class AnswerCut(Exception):
    """The connection broke before the answer was complete, or the bytes are not an answer of riseml's server."""


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The status line and the headers of an answer."""

    status: int
    headers: Mapping[str, str]  # by name, in lower case


class AnswerReader:
    """Reads the answers of one connection, one after the other.

    Raises:
        AnswerCut: every method that reads.
        OSError: every method that reads; TimeoutError when nothing came for too long.

    Args:
        sock: the connection, which the caller closes.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._held = b""  # bytes that have arrived and are not used yet, from `_at` on
        self._at = 0
        self._left = 0  # bytes of the body, or of the chunk, that are not used yet
        self._is_chunked = False  # the body comes in chunks, and the last one is not read yet
        self._after_chunk = False  # the end of line after a chunk is not read yet
        self._stays_open = True

    @property
    def is_complete(self) -> bool:
        """True when the whole answer was read, so that another one may follow on this connection."""
        return not self._left and not self._is_chunked and self._at == len(self._held) and self._stays_open

    def read_head(self, method: str) -> AnswerHead:
        """Return the head of the next answer, to a request with this method."""
        head = self._parse_head(self._read_until(b"\r\n\r\n", _LONGEST_HEAD))
        while 100 <= head.status < 200:  # the server says that the answer follows
            head = self._parse_head(self._read_until(b"\r\n\r\n", _LONGEST_HEAD))
        length = head.headers.get("content-length")
        coding = head.headers.get("transfer-encoding")
        self._stays_open = head.headers.get("connection", "").lower() != "close"
        self._left = 0
        self._is_chunked = False
        self._after_chunk = False
        if method == "HEAD" or head.status in _NO_BODY:
            return head
        if (coding is None) is (length is None) or (coding or "chunked").lower() != "chunked":
            raise AnswerCut("the answer does not say where it ends")  # riseml's server always does, in one way
        self._is_chunked = length is None
        self._left = 0 if length is None else _read_number(length, 10)
        return head

    def read_piece(self) -> bytes:
        """Return the next bytes of the body; none at its end."""
        if self._is_chunked and not self._left:
            self._begin_chunk()
        if not self._left:
            return b""
        if self._at == len(self._held):
            self._held = self._receive_bytes()
            self._at = 0
        piece = self._held[self._at : self._at + self._left]
        self._at += len(piece)
        self._left -= len(piece)
        self._after_chunk = self._is_chunked and not self._left
        return piece

    def _begin_chunk(self) -> None:
        """Read the length of the next chunk. The last chunk has the length 0; skip the trailer lines after it."""
        if self._after_chunk and self._read_until(b"\r\n", _LONGEST_LINE):
            raise AnswerCut("a part of the answer is longer than it says")
        line = self._read_until(b"\r\n", _LONGEST_LINE)
        self._left = _read_number(line.partition(b";")[0].strip().decode("latin-1"), 16)
        if self._left:
            return
        while self._read_until(b"\r\n", _LONGEST_LINE):
            pass
        self._is_chunked = False

    def _read_until(self, end: bytes, most: int) -> bytes:
        """Return the bytes before `end`, and consume both."""
        begin = self._at
        while (line_end := self._held.find(end, begin)) < 0:
            begin = max(self._at, len(self._held) - len(end) + 1)
            if len(self._held) - self._at > most:
                raise AnswerCut("the head of the answer is too long")
            remainder = self._held[self._at :]
            begin -= self._at
            self._held = remainder + self._receive_bytes()
            self._at = 0
        line = self._held[self._at : line_end]
        self._at = line_end + len(end)
        return line

    def _receive_bytes(self) -> bytes:
        piece = self._sock.recv(_PIECE)
        if not piece:
            raise AnswerCut("the server closed the connection")
        return piece

    @staticmethod
    def _parse_head(text: bytes) -> AnswerHead:
        first, *lines = text.decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        if version != "HTTP/1.1" or not status[:3].isdecimal() or len(status.partition(" ")[0]) != 3:
            raise AnswerCut("what answers speaks another protocol")
        pairs = (line.partition(":") for line in lines)
        return AnswerHead(int(status[:3]), {name.lower(): value.strip() for name, _, value in pairs})


def _read_number(text: str, base: int) -> int:
    """Return a length. Python alone would also take signs, spaces and underscores."""
    if not 0 < len(text) <= _MOST_DIGITS or not frozenset(_DIGITS[base]).issuperset(text):
        raise AnswerCut("a length in the answer is not a number")
    return int(text, base)
