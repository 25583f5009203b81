"""Cursors of logs."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.model import Frame, FramePosition, LogCursor


def cursor_after(frames: Sequence[Frame]) -> LogCursor:
    """Return the cursor of a store that holds these frames."""
    last = {frame.stream: frame for frame in frames}
    return LogCursor(
        {
            stream: FramePosition(
                one.at,
                sum((frame.stream, frame.at) == (stream, one.at) for frame in frames),
                goes_on=not one.data.endswith(b"\n"),
            )
            for stream, one in last.items()
        }
    )
