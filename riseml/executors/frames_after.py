"""Continue reading a log after a cursor, for every kind of executor."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from riseml.executors.timestamps import to_nanoseconds
from riseml.log_cursor import LogCursor
from riseml.model import Frame

OVERLAP = 10**9
"""Nanoseconds before the cursor's latest timestamp from which a log is read again: a frame of one stream may be written
after a frame of the other one that has a later timestamp."""


class FramesAfter:
    """Keeps the frames that the store does not hold yet.

    Reading can only continue from a timestamp. So frames that the store holds come again, and several frames may have
    one timestamp: the cursor counts how many with its timestamp the store holds, for each stream.

    Args:
        cursor: where the reader of the log stopped.
    """

    def __init__(self, cursor: LogCursor) -> None:
        # streams whose next frames the store may already hold: nanoseconds of the last one, and how many of these are
        # left
        self._left = {stream: (to_nanoseconds(one.at), one.frames_held) for stream, one in cursor.positions.items()}

    def keep_new(self, frames: Iterable[Frame]) -> list[Frame]:
        """Return the new frames among these, which begin at or before the cursor's last timestamp."""
        if not self._left:
            return list(frames)
        return [frame for frame in frames if frame.stream not in self._left or self._is_new(frame)]

    def _is_new(self, frame: Frame) -> bool:
        if not frame.at:  # the engine's own messages have no timestamp
            return True
        last, held = self._left[frame.stream]
        at = to_nanoseconds(frame.at)
        if at < last:
            return False
        if at == last and held > 1:
            self._left[frame.stream] = (last, held - 1)
            return False
        del self._left[frame.stream]  # all further frames of this stream are new, also if the clock was set back
        return at > last


def find_start(cursor: LogCursor, streams: Collection[int]) -> int | None:
    """Return the timestamp from which the frames of some streams come again that the store may lack, in nanoseconds;
    None: it holds none of these streams.
    """
    latest = find_latest(cursor, streams)
    if latest is None:
        return None
    open_lines = (one for stream, one in cursor.positions.items() if stream in streams and one.goes_on)
    return max(0, min([latest - OVERLAP, *(to_nanoseconds(one.at) for one in open_lines)]))


def find_latest(cursor: LogCursor, streams: Collection[int]) -> int | None:
    """Return the latest timestamp of some streams that the store holds, in nanoseconds; None: it holds none."""
    known = [cursor.positions[stream].at for stream in streams if stream in cursor.positions]
    return max(map(to_nanoseconds, known), default=None)
