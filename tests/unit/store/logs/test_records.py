"""The records of a log file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.records import OpenLines, RecordRun, encode_frames, feed_line, split_runs
from tests.unit.store.logs.log_frames import HALF

KEY = JobKey(4, JobName("worker.1"), 1)
FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from(["", "2026-08-31T07:23:46.1Z", "2026-08-31T07:23:46.2Z"]),
        st.sampled_from([1, 2, 3]),
        st.sampled_from([b"\n", b"a\n", b"b", b"", b"progress\r", b"x" * (HALF + 1), b"y" * HALF + b"\n"]),
    ),
    max_size=12,
)


@given(FRAMES, st.integers(0, 12))
def test_a_server_that_recovers_finds_the_lines_that_the_writer_left_open(frames: list[Frame], cut: int) -> None:
    """Whether the writer wrote at once or in two parts, and though recovery takes whole runs of records."""
    first, middle = encode_frames(KEY, frames[:cut], {})
    second, written = encode_frames(KEY, frames[cut:], middle)
    assert (first + second, written) == encode_frames(KEY, frames, {})
    recovered: OpenLines = {}
    stamps: list[str] = []
    for run in split_runs(first + second):
        assert isinstance(run, RecordRun)
        recovered = feed_line(recovered, run.head.stream, run.head.kind, run.text_size())
        stamps += reversed(list(run.stamps_from_last()))
    assert recovered == written
    assert stamps == [frame.at for frame in frames], "each frame is one record"
