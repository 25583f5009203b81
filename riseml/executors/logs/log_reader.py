"""Read the log of one job, which its supervisor writes, as frames after a cursor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from riseml.executors.base import OutputLost
from riseml.executors.logs.frames_after import FramesAfter, find_earliest, find_latest
from riseml.executors.logs.timestamps import to_text
from riseml.executors.supervision.job_files import is_time, read_bytes
from riseml.executors.supervision.output_log import HEADER, STDERR, STDOUT
from riseml.model import Frame, LogCursor

_READ_SIZE = 1 << 20  # bytes read at once; a longer record is read whole
_STREAMS = (STDOUT, STDERR)
_LONGEST_RECORD = 16 << 20  # bytes; supervisors write 64 KiB at most


def find_first_output(path: Path) -> float | None:
    """Return when a job has printed something for the first time, in seconds since the epoch; None: it never did.

    A job that has printed has run, also when the record of its start is lost.
    """
    try:
        header = read_bytes(path, HEADER.size)
    except OSError:
        return None
    at = HEADER.unpack(header)[0] if len(header) == HEADER.size else 0
    return at / 1e9 if is_time(at / 1e9) and at else None


class JobLogReader:
    """Continues where it stopped. An incomplete record is left for the next call.

    Args:
        path: the log; it may not exist yet.
        cursor: frames up to here are left out.
    """

    def __init__(self, path: Path, cursor: LogCursor) -> None:
        self._path = path
        self._offset = 0  # bytes read so far
        self._was_there = bool(cursor.positions)  # the log had records
        # nanoseconds; a supervisor's timestamps grow over all streams, so that the store holds all earlier records
        self._after = (find_earliest(cursor, _STREAMS) if cursor.lags else find_latest(cursor, cursor.positions)) or -1
        self._frames_after = FramesAfter(cursor)

    def read_frames(self) -> list[Frame]:
        """Return the next frames; empty when the log has no further ones now. Call again until the result is empty.

        Raises:
            OutputLost: the log is damaged, and has no further ones.
        """
        frames: list[Frame] = []
        while not frames:
            data = self._read_records()
            if not data:
                break
            frames += self._frames_after.keep_new(self._split_records(data))
        return frames

    def check_end(self) -> None:
        """Check that everything was read, because the job has ended.

        Raises:
            OutputLost: the file is gone or shorter than what was read, or it goes on with zeros, as after a power cut.
        """
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(self._offset)
                is_zero = file.read(HEADER.size) == bytes(HEADER.size)
        except FileNotFoundError:
            size = 0
            is_zero = False
        if is_zero:
            raise OutputLost(f"{self._path} has zeros at byte {self._offset:,}, and is read no further")
        if size < self._offset or (self._was_there and not size):
            raise OutputLost(f"{self._path} was removed or cut")

    def _read_records(self) -> bytes:
        """Return complete records, about `_READ_SIZE` bytes of them.

        Raises:
            OutputLost: the next bytes are not a record. A job may write anything into a file of its own user.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_SIZE)
                missing = _count_missing(data)
                if missing and missing <= _LONGEST_RECORD and len(data) == _READ_SIZE:
                    data += file.read(missing)
        except FileNotFoundError:
            return b""
        complete = _count_complete(data)
        if not complete and missing > _LONGEST_RECORD:
            raise OutputLost(f"{self._path} is damaged at byte {self._offset:,}, and is read no further")
        self._offset += complete
        return data[:complete]

    def _split_records(self, data: bytes) -> Iterator[Frame]:
        """Yield one frame for each line, and one for the rest of a record after its last line."""
        position = 0
        while position < len(data):
            at, stream, size = HEADER.unpack_from(data, position)
            start, position = position + HEADER.size, position + HEADER.size + size
            if at < self._after:
                continue
            stamp = to_text(at)
            *lines, open_line = data[start:position].split(b"\n")
            for line in lines:
                yield Frame(stamp, stream, line + b"\n")
            if open_line:
                yield Frame(stamp, stream, open_line)


def _count_complete(data: bytes) -> int:
    """Return how many bytes of `data` are complete records. Zeros are none: a shared file system may show them before
    what a node has written arrives.
    """
    position = 0
    while position + HEADER.size <= len(data):
        at, _, size = HEADER.unpack_from(data, position)
        end = position + HEADER.size + size
        if end > len(data) or not at:
            break
        position = end
    return position


def _count_missing(data: bytes) -> int:
    """Return how many bytes the last record of `data` lacks; 0 when its header is not complete either."""
    tail = data[_count_complete(data) :]
    return HEADER.size + HEADER.unpack_from(tail)[2] - len(tail) if len(tail) >= HEADER.size else 0
