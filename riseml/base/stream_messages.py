"""The messages of a two-way stream between a command and a running job: one byte for the kind, then the fields.

Client, server and the runner of commands exchange them. Over the HTTP API each is one WebSocket message; between
the server and a process of this machine each follows its length (`LengthPrefixed`).

A sender may send as many bytes of a channel as the receiver has granted (`FlowWindow`). So each side always reads,
holds a bounded number of bytes, and notices at once that the other side is gone. Pure; standard library only.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from enum import Enum

from riseml.base.records import dataclass

WINDOW = 256 * 1024
"""Bytes of one direction that a sender may send before the receiver grants more."""

LONGEST_PIECE = 64 * 1024
"""Bytes of content in one message."""

LONGEST_MESSAGE = 1024 * 1024
"""Bytes of one message. Only a command with long arguments needs more than a piece."""

_KIND = struct.Struct(">B")
_NUMBER = struct.Struct(">i")
_LENGTH = struct.Struct(">I")
_SIZE = struct.Struct(">HH")


class Channel(Enum):
    """What a piece of content belongs to. A port has an input and an output."""

    INPUT = 0  # from the client to the job
    OUTPUT = 1
    ERRORS = 2  # standard error; a terminal and a port have none


class _Kind(Enum):
    PIECE = 0  # the kinds 0 to 2 are also numbers of channels
    PIECE_OF_OUTPUT = 1
    PIECE_OF_ERRORS = 2
    END = 3
    GRANT = 4
    WINDOW_SIZE = 5
    EXIT = 6
    FAILURE = 7
    COMMAND = 8
    READY = 9


@dataclass(frozen=True, slots=True)
class ChannelData:
    """Some bytes of a channel."""

    channel: Channel
    content: bytes


@dataclass(frozen=True, slots=True)
class ChannelEnd:
    """Nothing more comes on this channel."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """The receiver has passed on this many bytes: the sender may send as many more."""

    amount: int


@dataclass(frozen=True, slots=True)
class WindowSize:
    """The size of the user's terminal."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class CommandExit:
    """The command has ended. Nothing follows."""

    code: int


@dataclass(frozen=True, slots=True)
class StreamFailure:
    """The stream cannot go on. The fields are those of `wire.FailureBody`. Nothing follows."""

    kind: str
    message: str
    hint: str | None
    exit_code: int


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """The first message of a client: the command to run."""

    command: tuple[str, ...]  # empty: an interactive shell
    terminal: WindowSize | None = None  # None: without a terminal, standard error apart from standard output
    term: str = ""  # name of the terminal's kind, TERM


@dataclass(frozen=True, slots=True)
class StreamReady:
    """The command runs, or the port has answered; the first message of the server."""


StreamMessage = (
    ChannelData | ChannelEnd | WindowUpdate | WindowSize | CommandExit | StreamFailure | CommandRequest | StreamReady
)


def encode_message(message: StreamMessage) -> bytes:
    """Return a message as bytes."""
    match message:
        case ChannelData(channel, content):
            return _KIND.pack(channel.value) + content
        case ChannelEnd(channel):
            return _pack(_Kind.END, _KIND.pack(channel.value))
        case WindowUpdate(amount):
            return _pack(_Kind.GRANT, _LENGTH.pack(amount))
        case WindowSize(rows, columns):
            return _pack(_Kind.WINDOW_SIZE, _SIZE.pack(rows, columns))
        case CommandExit(code):
            return _pack(_Kind.EXIT, _NUMBER.pack(code))
        case StreamFailure():
            return _pack(_Kind.FAILURE, json.dumps(asdict(message)).encode())
        case CommandRequest():
            return _pack(_Kind.COMMAND, json.dumps(asdict(message)).encode())
        case StreamReady():
            return _pack(_Kind.READY, b"")


def decode_message(data: bytes) -> StreamMessage:
    """Return the message in these bytes.

    Raises:
        ValueError: the bytes are not a message.
    """
    if not data or len(data) > LONGEST_MESSAGE:
        raise ValueError(f"a message of {len(data)} bytes")
    kind = _Kind(data[0])
    payload = data[1:]
    try:
        return _decode_fields(kind, payload)
    except (struct.error, KeyError, TypeError) as error:
        raise ValueError(f"a malformed message of kind {kind.name}: {error}") from error


def _decode_fields(kind: _Kind, payload: bytes) -> StreamMessage:
    match kind:
        case _Kind.END:
            return ChannelEnd(Channel(_KIND.unpack(payload)[0]))
        case _Kind.GRANT:
            return WindowUpdate(_LENGTH.unpack(payload)[0])
        case _Kind.WINDOW_SIZE:
            return WindowSize(*_SIZE.unpack(payload))
        case _Kind.EXIT:
            return CommandExit(_NUMBER.unpack(payload)[0])
        case _Kind.FAILURE:
            return _decode_failure(json.loads(payload))
        case _Kind.COMMAND:
            return _decode_order(json.loads(payload))
        case _Kind.READY:
            if payload:
                raise ValueError("a ready message with fields")
            return StreamReady()
        case _:
            return ChannelData(Channel(kind.value), payload)


class FlowWindow:
    """What one side may still send, in bytes."""

    def __init__(self, size: int = WINDOW) -> None:
        self._size = size
        self.left = size

    def take(self, amount: int) -> None:
        """Count bytes that are sent, or that have arrived.

        Raises:
            ValueError: more bytes than were granted.
        """
        if amount > self.left:
            raise ValueError(f"{amount} bytes came, and only {self.left} were granted")
        self.left -= amount

    def take_part(self, content: bytes) -> tuple[bytes, bytes]:
        """Count and return as much as fits into one message, and the rest."""
        size = min(self.left, LONGEST_PIECE, len(content))
        self.take(size)
        return content[:size], content[size:]

    def grant(self, amount: int) -> None:
        """Allow this many bytes more.

        Raises:
            ValueError: there would be more than the window holds.
        """
        if amount > self._size - self.left:
            raise ValueError(f"{amount} bytes are granted, and only {self._size - self.left} were sent")
        self.left += amount


class LengthPrefixed:
    """Splits a stream into messages. Each message follows its length; pieces of the stream may be cut anywhere."""

    def __init__(self) -> None:
        self._incomplete = b""

    def feed(self, data: bytes) -> list[StreamMessage]:
        """Return the messages that are complete with `data`.

        Raises:
            ValueError: the data is not such a stream.
        """
        buffer = self._incomplete + data if self._incomplete else data
        messages: list[StreamMessage] = []
        position = 0
        while position + _LENGTH.size <= len(buffer):
            (length,) = _LENGTH.unpack_from(buffer, position)
            if length > LONGEST_MESSAGE:
                raise ValueError(f"a message of {length} bytes")
            start = position + _LENGTH.size
            if start + length > len(buffer):
                break
            messages.append(decode_message(buffer[start : start + length]))
            position = start + length
        self._incomplete = buffer[position:]
        return messages


def prefix_length(message: StreamMessage) -> bytes:
    """Return a message after its length, as `LengthPrefixed` reads it."""
    data = encode_message(message)
    return _LENGTH.pack(len(data)) + data


def _pack(kind: _Kind, fields: bytes) -> bytes:
    return _KIND.pack(kind.value) + fields


def _decode_failure(fields: object) -> StreamFailure:
    if not isinstance(fields, dict):
        raise ValueError("a failure without fields")
    kind, message, hint, code = (fields[name] for name in ("kind", "message", "hint", "exit_code"))
    if not (isinstance(kind, str) and isinstance(message, str) and isinstance(hint, str | None)):
        raise ValueError("a failure whose message or hint is not a text")
    if not isinstance(code, int):
        raise ValueError("a failure without an exit code")
    return StreamFailure(kind, message, hint, code)


def _decode_order(fields: object) -> CommandRequest:
    if not isinstance(fields, dict):
        raise ValueError("an order without fields")
    words = fields["command"]
    size = fields["terminal"]
    term = fields["term"]
    is_text = isinstance(words, list) and all(isinstance(word, str) and "\0" not in word for word in words)
    if not is_text or not isinstance(term, str) or len(term) > 64 or not term.isprintable():
        raise ValueError("an order whose command or terminal is not text")
    return CommandRequest(tuple(words), None if size is None else _decode_size(size), term)


def _decode_size(fields: object) -> WindowSize:
    if not isinstance(fields, dict):
        raise ValueError("a size without fields")
    rows = fields["rows"]
    columns = fields["columns"]
    if not all(isinstance(number, int) and 0 <= number < 1 << 16 for number in (rows, columns)):
        raise ValueError("a size without two numbers")
    return WindowSize(rows, columns)
