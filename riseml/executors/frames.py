"""The engine's log stream: eight header bytes a frame (Docker Engine API), a timestamp before each frame.

A line longer than 16 KiB comes in several frames that carry the same timestamp; only its last one ends with a newline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from riseml.model import Frame, LogCursor

_HEADER = 8
_ENGINE_STREAM = 3


class FrameReader:
    """Bytes in whatever pieces they come, frames out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with `data`."""
        buffer = self._rest + data if self._rest else data
        position, end = 0, len(buffer)
        while position + _HEADER <= end:
            size = int.from_bytes(buffer[position + 4 : position + _HEADER], "big")
            stop = position + _HEADER + size
            if stop > end:
                break
            stream = buffer[position]
            payload = buffer[position + _HEADER : stop]
            position = stop
            if stream == _ENGINE_STREAM:
                yield Frame("", stream, payload)
                continue
            at, _, text = payload.partition(b" ")
            yield Frame(at.decode("ascii", "replace"), stream, text)
        self._rest = buffer[position:]


class Behind:
    """Keeps the frames behind a cursor: the engine's `since` is inclusive, so that those already held come again
    first.
    """

    def __init__(self, cursor: LogCursor) -> None:
        self._at = cursor.at
        self._skip = cursor.seen

    def keep(self, frames: Iterable[Frame]) -> list[Frame]:
        """The new ones among the next frames."""
        if not self._skip:
            return list(frames)
        kept: list[Frame] = []
        for frame in frames:
            if self._skip and frame.at == self._at:
                self._skip -= 1
                continue
            if frame.at:
                self._skip = 0
            kept.append(frame)
        return kept


def since(cursor: LogCursor) -> str | None:
    """The cursor as the engine's `since`: seconds and nine digits; None from the beginning.

    `2026-08-31T07:23:46.5Z` has fewer digits than nine: the engine leaves trailing zeros out.
    """
    if not cursor.at:
        return None
    whole, _, fraction = cursor.at.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return f"{seconds}.{fraction.ljust(9, '0')[:9]}"
