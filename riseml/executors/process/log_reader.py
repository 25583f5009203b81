"""The log of one job as its supervisor writes it (`supervisor`), read as frames behind a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from riseml.executors.frames_after import FramesAfter
from riseml.executors.process.supervisor import HEADER
from riseml.executors.timestamps import to_nanoseconds, to_text
from riseml.model import Frame, LogCursor

_CHUNK = 1 << 20


class LogReader:
    """Reads on from where it stopped; a record that is not whole yet is left for the next time.

    Args:
        path: the log; it need not be there yet.
        cursor: frames up to here are left out.
    """

    def __init__(self, path: Path, cursor: LogCursor) -> None:
        self._path = path
        self._offset = 0
        self._after = to_nanoseconds(cursor.at) if cursor.at else -1
        self._frames_after = FramesAfter(cursor)

    def read(self) -> list[Frame]:
        """The next frames; none when nothing more is there now. Call again until none come."""
        frames: list[Frame] = []
        while not frames:
            data = self._load()
            if not data:
                break
            frames += self._frames_after.keep_new(self._split(data))
        return frames

    def _load(self) -> bytes:
        """Whole records, about a chunk of them."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_CHUNK)
                missing = _missing(data)
                if missing and len(data) == _CHUNK:
                    data += file.read(missing)
        except FileNotFoundError:
            return b""
        whole = _whole(data)
        self._offset += whole
        return data[:whole]

    def _split(self, data: bytes) -> Iterator[Frame]:
        """One frame a line, and one for what stands behind the last line of a record."""
        position = 0
        while position < len(data):
            at, stream, size = HEADER.unpack_from(data, position)
            start, position = position + HEADER.size, position + HEADER.size + size
            if at < self._after:
                continue
            stamp = to_text(at)
            *lines, rest = data[start:position].split(b"\n")
            for line in lines:
                yield Frame(stamp, stream, line + b"\n")
            if rest:
                yield Frame(stamp, stream, rest)


def _whole(data: bytes) -> int:
    """How many bytes of `data` are whole records."""
    position = 0
    while position + HEADER.size <= len(data):
        end = position + HEADER.size + HEADER.unpack_from(data, position)[2]
        if end > len(data):
            break
        position = end
    return position


def _missing(data: bytes) -> int:
    """How many bytes the last record of `data` lacks, as far as its header tells."""
    rest = data[_whole(data) :]
    return HEADER.size + HEADER.unpack_from(rest)[2] - len(rest) if len(rest) >= HEADER.size else 0
