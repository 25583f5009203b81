"""Cursors of logs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

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


frames = st.lists(
    st.builds(
        Frame,
        st.integers(0, 3).map(lambda tenth: f"2026-08-31T07:23:46.{tenth}Z"),
        st.sampled_from([1, 2]),
        st.binary(max_size=30),
    ),
    max_size=20,
)
