"""The engine's log stream, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.executors.docker.log_frames import ChunkReader, FrameReader, format_since
from riseml.executors.frames_after import FramesAfter
from riseml.model import Frame, LogCursor

frames = st.lists(
    st.builds(
        Frame,
        st.integers(0, 3).map(lambda tenth: f"2026-08-31T07:23:46.{tenth}Z"),
        st.sampled_from([1, 2]),
        st.binary(max_size=30),
    ),
    max_size=20,
)


def encode(frame: Frame) -> bytes:
    payload = frame.at.encode() + b" " + frame.data
    return bytes([frame.stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(frames, st.lists(st.integers(1, 50), max_size=40))
def test_frames_are_whole_wherever_the_stream_is_cut(written: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, written))
    reader = FrameReader()
    found: list[Frame] = []
    for size in [*cuts, len(data)]:
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == written


@given(frames, st.integers(0, 20))
def test_a_reader_with_a_cursor_loses_and_repeats_nothing(written: list[Frame], held: int) -> None:
    written = sorted(written, key=lambda frame: frame.at)
    before, rest = written[:held], written[held:]
    at = before[-1].at if before else ""
    cursor = LogCursor(at, sum(frame.at == at for frame in before))
    again = [frame for frame in written if frame.at >= at]  # the engine's `since` is inclusive
    assert FramesAfter(cursor).keep_new(again) == rest


def test_since_has_nine_digits() -> None:
    assert format_since(LogCursor("2026-08-31T07:23:46.5Z", 1)) == "1788161026.500000000"
    assert format_since(LogCursor("2026-08-31T07:23:46Z", 1)) == "1788161026.000000000"
    assert format_since(LogCursor()) is None


def test_a_frame_of_the_engine_itself_has_no_timestamp() -> None:
    payload = b"Error grabbing logs"
    data = bytes([3, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload
    assert list(FrameReader().feed(data)) == [Frame("", 3, payload)]


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=10), st.lists(st.integers(1, 400), max_size=40))
def test_chunks_are_whole_wherever_the_body_is_cut(written: list[bytes], cuts: list[int]) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in written) + b"0\r\n\r\n"
    reader = ChunkReader()
    found = b""
    for size in [*cuts, len(data)]:
        assert not reader.complete or not data
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == b"".join(written)
    assert reader.complete


def test_a_body_that_was_cut_is_not_complete() -> None:
    reader = ChunkReader()
    assert reader.feed(b"3\r\nabc\r\n0\r\n") == b"abc"
    assert not reader.complete
    with pytest.raises(ValueError, match="no size"):
        ChunkReader().feed(b"this is no chunk at all\r\n")
