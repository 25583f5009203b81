"""The engine's log stream: each frame has a header of eight bytes (Docker Engine API) and starts with a timestamp.

A line longer than 16 KiB arrives in several frames with the same timestamp; only its last frame ends with a newline.
The engine sends every frame as a separate HTTP chunk. `ChunkReader` splits many chunks at once.
"""

from __future__ import annotations

import struct

from riseml.executors.logs.frames_after import find_start
from riseml.model import Frame, LogCursor

_HEADER = struct.Struct(">BxxxI")  # the stream, the size of what follows
_STREAMS = (1, 2)  # stdout and stderr
_ENGINE_STREAM = 3
_LONGEST_SIZE = 16  # hexadecimal digits


class ChunkReader:
    """Splits a body into its HTTP chunks; pieces may be cut anywhere. The engine sends no extensions and no
    trailers."""

    def __init__(self) -> None:
        self.complete = False  # the last chunk has arrived; without it the body was cut
        self._remainder = b""

    def feed(self, data: bytes) -> bytes:
        """Return the content of the chunks that are complete with `data`.

        Raises:
            ValueError: the body is not chunked.
        """
        buffer = self._remainder + data if self._remainder else data
        pieces: list[bytes] = []
        position = 0
        end = len(buffer)
        while not self.complete:
            line = buffer.find(b"\r\n", position, position + _LONGEST_SIZE)
            if line < 0:
                if end - position >= _LONGEST_SIZE:
                    raise ValueError("a chunk has no size")
                break
            size = int(buffer[position:line], 16)
            stop = line + 2 + size
            if stop + 2 > end:
                break
            pieces.append(buffer[line + 2 : stop])
            position = stop + 2
            self.complete = size == 0
        self._remainder = buffer[position:]
        return b"".join(pieces)


class FrameReader:
    """Splits a log stream into frames; pieces may be cut anywhere."""

    def __init__(self) -> None:
        self._remainder = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete with `data`."""
        buffer = self._remainder + data if self._remainder else data
        frames: list[Frame] = []
        position = 0
        end = len(buffer)
        while position + _HEADER.size <= end:
            stream, size = _HEADER.unpack_from(buffer, position)
            start = position + _HEADER.size
            stop = start + size
            if stop > end:
                break
            position = stop
            blank = buffer.find(b" ", start, stop)
            if stream == _ENGINE_STREAM or blank < 0:
                frames.append(Frame("", stream, buffer[start:stop]))
            else:
                frames.append(Frame(buffer[start:blank].decode("ascii", "replace"), stream, buffer[blank + 1 : stop]))
        self._remainder = buffer[position:]
        return frames


def format_since(cursor: LogCursor) -> str | None:
    """Return the engine's `since` of a cursor, seconds with nine digits; None: from the start of the log."""
    start = find_start(cursor, _STREAMS)
    if start is None:
        return None
    seconds, nanoseconds = divmod(start, 10**9)
    return f"{seconds}.{nanoseconds:09d}"
