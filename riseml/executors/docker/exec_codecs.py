"""The formats of a stream to a command in a container (Docker Engine API, "attach to a container").

With a terminal: the terminal's bytes. Without one: frames of the two outputs, each with a header of eight bytes.
"""

from __future__ import annotations

import struct

from riseml.base.stream_messages import Channel, ChannelData, ChannelEnd, StreamMessage

_HEADER = struct.Struct(">BxxxI")  # the stream, the size of what follows
_CHANNELS = {1: Channel.OUTPUT, 2: Channel.ERRORS}
_ENGINE_STREAM = 3  # the engine's own messages
END_OF_INPUT = b"\x04"  # Ctrl-D: a terminal has no other end


class FramedCodec:
    """Frames of the outputs; the input is sent as it is, and ends with the sending side of the connection."""

    def __init__(self) -> None:
        self._remainder = b""  # bytes of a header that is not complete
        self._channel = Channel.OUTPUT
        self._left = 0  # bytes that the current frame still has

    def decode(self, data: bytes) -> list[StreamMessage]:
        messages: list[StreamMessage] = []
        data, self._remainder = self._remainder + data, b""
        while data:
            if not self._left:
                if len(data) < _HEADER.size:
                    self._remainder = data
                    break
                self._begin_frame(data[: _HEADER.size])
                data = data[_HEADER.size :]
                continue
            content, data = data[: self._left], data[self._left :]
            self._left -= len(content)
            messages.append(ChannelData(self._channel, content))
        return messages

    def encode(self, message: StreamMessage) -> bytes | None:
        match message:
            case ChannelData(Channel.INPUT, content):
                return content
            case ChannelEnd(Channel.INPUT):
                return None
            case _:
                return b""

    def _begin_frame(self, header: bytes) -> None:
        stream, self._left = _HEADER.unpack(header)
        if stream == _ENGINE_STREAM:
            self._channel = Channel.ERRORS
        elif stream in _CHANNELS:
            self._channel = _CHANNELS[stream]
        else:
            raise ValueError(f"the engine sent a frame of stream {stream}")
