"""A two-way stream into a running job, as an executor opens it: a plain socket, and what its bytes mean.

The server copies between the socket and its client. `StreamControl` has what the bytes do not carry.
"""

from __future__ import annotations

import socket
from typing import Protocol

from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData, ChannelEnd, StreamMessage, WindowSize


class StreamCodec(Protocol):
    """Converts between the bytes of the socket and messages."""

    def decode(self, data: bytes) -> list[StreamMessage]:
        """Return the messages that are complete with `data`.

        Raises:
            ValueError: the other end violates the format.
        """

    def encode(self, message: StreamMessage) -> bytes | None:
        """Return the bytes of the socket for a message; empty: none; None: end the sending side."""


class StreamControl(Protocol):
    """The calls for a stream outside of its socket. They block, and may raise `Unreachable` or `EngineError`."""

    def resize(self, size: WindowSize) -> None:
        """Set the size of the terminal on the job's side."""

    def find_exit_code(self) -> int | None:
        """Return the exit code once the socket has ended; None for a port, which has none.

        Raises:
            NotThere: the job has ended before the command.
        """

    def end(self) -> None:
        """End everything that was started for the stream; return when all of it has ended. May be called twice."""


@dataclass(frozen=True, slots=True)
class JobStream:
    """An open stream."""

    socket: socket.socket  # connected and without TLS, so that asyncio can use it; the caller closes it
    codec: StreamCodec
    control: StreamControl
    received: bytes = b""  # bytes of the socket that came together with the answer to the request


class RawCodec:
    """The bytes of the socket are the content: of a port, or of a terminal.

    Args:
        end_of_input: bytes that end the input; None: one direction of the socket is closed.
    """

    def __init__(self, end_of_input: bytes | None = None) -> None:
        self._end_of_input = end_of_input

    def decode(self, data: bytes) -> list[StreamMessage]:
        return [ChannelData(Channel.OUTPUT, data)]

    def encode(self, message: StreamMessage) -> bytes | None:
        match message:
            case ChannelData(Channel.INPUT, content):
                return content
            case ChannelEnd(Channel.INPUT):
                return self._end_of_input
            case _:
                return b""


class NoControl:
    """The control of a port of a job: riseml has started no process for it."""

    def resize(self, size: WindowSize) -> None:
        """Do nothing."""

    def find_exit_code(self) -> int | None:
        return None

    def end(self) -> None:
        """Do nothing."""
