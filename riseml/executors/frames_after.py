"""Continue reading a log after a cursor, for every kind of executor."""

from __future__ import annotations

from collections.abc import Iterable

from riseml.model import Frame, LogCursor


class FramesAfter:
    """Keeps the frames that the store does not hold yet.

    Reading can only continue from a timestamp, and several frames may have the same one. So the frames with the
    cursor's timestamp come again first; the cursor counts how many of them the store holds.

    Args:
        cursor: where the reader of the log stopped.
    """

    def __init__(self, cursor: LogCursor) -> None:
        self._at = cursor.at
        self._left = cursor.frames_held

    def keep_new(self, frames: Iterable[Frame]) -> list[Frame]:
        """Return the new ones among the next frames, which begin at the cursor's timestamp."""
        if not self._left:
            return list(frames)
        kept: list[Frame] = []
        for frame in frames:
            if self._left and frame.at == self._at:
                self._left -= 1
                continue
            if frame.at:  # the engine's own messages have no timestamp
                self._left = 0
            kept.append(frame)
        return kept
