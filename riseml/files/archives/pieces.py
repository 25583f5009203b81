"""The stream in which a client sends contents: many small files in a piece, each piece compressed if that helps.

A piece is a header and its bytes. The header says how the bytes are written (as they are, or by zlib), how many there
are, and how many of them travel. The bytes of all pieces together are one record for each content: its length in 8
bytes, and the content. Nothing names a content: the receiver computes its SHA-256.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Protocol

from riseml.base.errors import UsageError
from riseml.base.records import dataclass

PIECE = 1 << 20
"""Bytes of a piece before it is compressed."""

RECORD = Struct("<Q")
"""The length before each content."""

INCOMING = "incoming"
"""The folder, below that of the snapshots, in which a client on the same machine leaves packs: files of records."""

_HEADER = Struct("<BII")
_PLAIN = 0
_ZLIB = 1
_LEVEL = 1  # level of zlib: more takes longer than most networks save
_SAMPLE = 1 << 14  # bytes of a piece that say whether compressing helps
_HELPS = 0.9  # compression helps when it leaves this share of the bytes, or less


def write_pieces(data: Iterable[bytes], *, compress: bool) -> Iterator[bytes]:
    """Yield the pieces for the bytes of records.

    Args:
        data: records, cut anywhere.
        compress: True for a network; on one machine it takes more time than it saves.
    """
    buffered: list[bytes] = []
    size = 0
    for whole in data:
        for at in range(0, len(whole), PIECE):
            part = whole if len(whole) <= PIECE else whole[at : at + PIECE]
            if size + len(part) > PIECE:
                yield _write_piece(buffered, size, compress=compress)
                buffered = []
                size = 0
            buffered.append(part)
            size += len(part)
    if size:
        yield _write_piece(buffered, size, compress=compress)


def _write_piece(parts: list[bytes], size: int, *, compress: bool) -> bytes:
    """Return a piece; what is not compressed is copied once."""
    if compress:
        raw = b"".join(parts)
        if len(zlib.compress(raw[:_SAMPLE], _LEVEL)) <= _HELPS * min(size, _SAMPLE):
            packed = zlib.compress(raw, _LEVEL)
            return _HEADER.pack(_ZLIB, size, len(packed)) + packed
    return b"".join((_HEADER.pack(_PLAIN, size, size), *parts))


class PieceReader:
    """Turns bytes from a network into the bytes of records. It holds one compressed piece in memory."""

    def __init__(self) -> None:
        self._head = b""  # begin of a header that is not complete
        self._kind = _PLAIN
        self._size = 0
        self._left = 0  # bytes of the piece that have not arrived
        self._packed = bytearray()  # those that have arrived of a compressed piece

    def feed(self, data: bytes) -> Iterator[bytes | memoryview]:
        """Take the next bytes of the stream, and yield the bytes of records in them: parts of `data`, not copies, where
        they are not compressed.

        Raises:
            UsageError: the stream was not made by `write_pieces`.
        """
        view = memoryview(data)
        at = 0
        while at < len(view):
            if not self._left:
                at = self._read_header(view, at)
                continue
            part = view[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            if self._kind == _PLAIN:
                yield part
                continue
            self._packed += part
            if not self._left:
                packed = bytes(self._packed)
                self._packed.clear()
                yield _inflate(packed, self._size)

    def _read_header(self, view: memoryview, at: int) -> int:
        missing = _HEADER.size - len(self._head)
        self._head += bytes(view[at : at + missing])
        if len(self._head) == _HEADER.size:
            kind, size, packed = _HEADER.unpack(self._head)
            if kind not in (_PLAIN, _ZLIB) or not 0 < size <= PIECE or not 0 < packed <= 2 * PIECE:
                raise _make_refusal()
            if kind == _PLAIN and packed != size:
                raise _make_refusal()
            self._head = b""
            self._kind = kind
            self._size = size
            self._left = packed
        return min(at + missing, len(view))

    def check_end(self) -> None:
        """Check that the stream has ended with a whole piece.

        Raises:
            UsageError: it is cut off.
        """
        if self._head or self._left:
            raise _make_refusal()


def _inflate(packed: bytes, size: int) -> bytes:
    """Return the bytes of a compressed piece; never more than it says that it has."""
    reader = zlib.decompressobj()
    try:
        raw = reader.decompress(packed, size)
    except zlib.error:
        raise _make_refusal() from None
    if len(raw) != size or reader.decompress(reader.unconsumed_tail, 1) or not reader.eof:
        raise _make_refusal()
    return raw


class Sink(Protocol):
    """Receives contents one after the other."""

    def begin_content(self, size: int) -> None:
        """Take the length of the next content."""

    def add_bytes(self, data: bytes | memoryview) -> None:
        """Take the next bytes of it."""

    def end_content(self) -> None:
        """Take note that the content is complete."""


@dataclass(slots=True)
class RecordReader:
    """Cuts the bytes of records into contents."""

    sink: Sink
    most: int  # bytes of a content
    _head: bytes = b""  # begin of a length that is not complete
    _left: int | None = None  # bytes of the content; None: the next bytes are a length

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes.

        Raises:
            UsageError: a content is longer than the receiver takes.
        """
        view = memoryview(data)
        at = 0
        while at < len(view):
            if self._left is None:
                at = self._read_length(view, at)
                continue
            piece = view[at : at + self._left]
            self.sink.add_bytes(piece)
            at += len(piece)
            self._left -= len(piece)
            self._end_if_complete()

    def _read_length(self, view: memoryview, at: int) -> int:
        missing = RECORD.size - len(self._head)
        self._head += bytes(view[at : at + missing])
        if len(self._head) == RECORD.size:
            (self._left,) = RECORD.unpack(self._head)
            self._head = b""
            if self._left > self.most:
                raise _make_refusal()
            self.sink.begin_content(self._left)
            self._end_if_complete()
        return min(at + missing, len(view))

    def _end_if_complete(self) -> None:
        if self._left == 0:
            self.sink.end_content()
            self._left = None


def _make_refusal() -> UsageError:
    return UsageError("the project's files came in a form that riseml does not take", "run the command again")
