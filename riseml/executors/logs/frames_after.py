"""Continue reading a log after a cursor, for every kind of executor."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from riseml.executors.logs.timestamps import is_before, to_nanoseconds
from riseml.model import Frame, LogCursor

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
        # streams whose next frames the store may already hold: the last timestamp, and how many of its frames are left
        self._left = {stream: (position.at, position.frames_held) for stream, position in cursor.positions.items()}

    def keep_new(self, frames: Iterable[Frame]) -> list[Frame]:
        """Return the new frames among these, which begin at or before the cursor's last timestamp."""
        if not self._left:
            return list(frames)
        return [frame for frame in frames if frame.stream not in self._left or self._is_new(frame)]

    def _is_new(self, frame: Frame) -> bool:
        if not frame.at:  # the engine's own messages have no timestamp
            return True
        last, frames_left = self._left[frame.stream]
        if is_before(frame.at, last):
            return False
        is_later = is_before(last, frame.at)
        if not is_later and frames_left > 1:
            self._left[frame.stream] = (last, frames_left - 1)
            return False
        del self._left[frame.stream]  # all further frames of this stream are new, also if the clock was set back
        return is_later


def holds_end(cursor: LogCursor, tail: Sequence[Frame], most: int) -> bool:
    """Return True when the store holds the last frame of a log, and so all of them, because it appends them in the
    order of the log. False: it does not, or the tail does not show it.

    Args:
        cursor: where the reader of the log stopped.
        tail: the last frames of the complete log.
        most: how many frames were requested: a shorter tail is the whole log.
    """
    if not tail:
        return False
    last = tail[-1]
    position = cursor.positions.get(last.stream)
    stamps = [frame.at for frame in tail if frame.stream == last.stream]
    same = sum(1 for _ in itertools.takewhile(last.at.__eq__, reversed(stamps)))
    # with an earlier frame in the tail, or all frames, `same` counts all that have the last timestamp
    counts_all = same < len(stamps) or len(tail) < most
    return position is not None and (position.at, position.frames_held) == (last.at, same) and counts_all


def find_start(cursor: LogCursor, streams: Collection[int]) -> int | None:
    """Return the timestamp (nanoseconds) to read again from, so that no frame of these streams is missed; None: the
    store holds nothing of them.
    """
    latest = find_earliest(cursor, streams) if cursor.lags else find_latest(cursor, streams)
    if latest is None:
        return None
    open_lines = (position for stream, position in cursor.positions.items() if stream in streams and position.goes_on)
    return max(0, min([latest - OVERLAP, *(to_nanoseconds(line.at) for line in open_lines)]))


def find_earliest(cursor: LogCursor, streams: Collection[int]) -> int | None:
    """Return the timestamp, in nanoseconds, up to which the store holds all frames of some streams; None: it lacks one
    of them.
    """
    if any(stream not in cursor.positions for stream in streams):
        return None
    return min(to_nanoseconds(cursor.positions[stream].at) for stream in streams)


def find_latest(cursor: LogCursor, streams: Collection[int]) -> int | None:
    """Return the latest timestamp of some streams that the store holds, in nanoseconds; None: it holds none."""
    stamps = [cursor.positions[stream].at for stream in streams if stream in cursor.positions]
    return max(map(to_nanoseconds, stamps), default=None)
