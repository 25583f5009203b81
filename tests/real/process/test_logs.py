"""The log of a job: written by its supervisor, read behind any cursor."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.executors.base import OutputLost
from riseml.executors.logs.log_reader import JobLogReader
from riseml.executors.logs.timestamps import to_nanoseconds, to_text
from riseml.executors.supervision.output_log import HEADER, STDERR, STDOUT, OutputLog
from riseml.model import Frame, LogCursor
from tests.support.cursors import cursor_after

PIECES = [b"one\ntwo\n", b"a half", b" line\n", b"\r\n", b"\n\n\n", b"x" * 70_000, b"y\n" * 3, b"\xff\x00 end"]


def write(path: Path, pieces: list[bytes]) -> None:
    """Write a log with these pieces, two of them with each timestamp."""
    path.write_bytes(
        b"".join(
            HEADER.pack(10**18 + number // 2, STDERR if number % 3 == 0 else STDOUT, len(piece)) + piece
            for number, piece in enumerate(pieces)
        )
    )


def read(path: Path, cursor: LogCursor = LogCursor()) -> list[Frame]:  # noqa: B008  # frozen
    """Return every frame behind a cursor."""
    reader = JobLogReader(path, cursor)
    frames: list[Frame] = []
    while batch := reader.read_frames():
        frames += batch
    return frames


def test_a_reader_with_any_cursor_loses_and_repeats_nothing(tmp_path: Path) -> None:
    write(tmp_path / "log", PIECES)
    frames = read(tmp_path / "log")
    assert b"".join(frame.data for frame in frames) == b"".join(PIECES)
    assert all(b"\n" not in frame.data[:-1] for frame in frames)
    for count in range(1, len(frames) + 1):
        assert read(tmp_path / "log", cursor_after(frames[:count])) == frames[count:]


def test_an_incomplete_record_waits_for_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, PIECES)
    data = path.read_bytes()
    reader = JobLogReader(path, LogCursor())
    path.write_bytes(b"")
    found: list[Frame] = []
    for size in [*range(0, 200), *range(200, len(data), 997), len(data)]:
        path.write_bytes(data[:size])
        found += reader.read_frames()
    assert b"".join(frame.data for frame in found) == b"".join(PIECES)


@pytest.mark.parametrize("size", [5, 13, 5000])
def test_zeros_at_the_end_are_no_records_until_they_are_written(tmp_path: Path, size: int) -> None:
    """A shared file system may show zeros before what a node has written arrives; a power cut leaves them."""
    path = tmp_path / "log"
    write(path, PIECES)
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(size))
    reader = JobLogReader(path, LogCursor())
    found = reader.read_frames()
    assert reader.read_frames() == []
    path.write_bytes(whole)
    while batch := reader.read_frames():
        found += batch
    reader.check_end()
    assert b"".join(frame.data for frame in found) == b"".join(PIECES)
    path.write_bytes(whole + bytes(size))
    assert reader.read_frames() == []
    if size >= HEADER.size:
        with pytest.raises(OutputLost, match="has zeros at byte"):
            reader.check_end()


def test_a_log_that_is_cut_or_removed_before_it_was_read_to_its_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    JobLogReader(path, LogCursor()).check_end()  # a job whose supervisor could not start has none
    write(path, PIECES)
    reader = JobLogReader(path, LogCursor())
    frames = reader.read_frames()
    reader.check_end()
    path.write_bytes(b"")
    with pytest.raises(OutputLost, match="was removed or cut"):
        reader.check_end()
    path.unlink()
    with pytest.raises(OutputLost, match="was removed or cut"):
        JobLogReader(path, cursor_after(frames)).check_end()


def test_records_longer_than_one_read_are_complete(tmp_path: Path) -> None:
    pieces = [b"a" * 700_000 + b"\n", b"b" * 3_000_000 + b"\n", b"c\n"]
    write(tmp_path / "log", pieces)
    assert [len(frame.data) for frame in read(tmp_path / "log")] == [700_001, 3_000_001, 2]


def test_a_log_that_does_not_exist_yet_has_no_frames(tmp_path: Path) -> None:
    reader = JobLogReader(tmp_path / "log", LogCursor())
    assert reader.read_frames() == []
    write(tmp_path / "log", [b"x\n"])
    assert [frame.data for frame in reader.read_frames()] == [b"x\n"]


@pytest.mark.parametrize("moment", [0, 1, 999_999_999, 10**18 + 5, 1_788_161_026_123_456_789])
def test_a_timestamp_survives_a_round_trip(moment: int) -> None:
    assert to_nanoseconds(to_text(moment)) == moment
    assert len(to_text(moment)) == len("2026-08-31T07:23:46.000000500Z")


def test_a_timestamp_may_have_fewer_digits() -> None:
    assert to_nanoseconds("2026-08-31T07:23:46.5Z") == to_nanoseconds("2026-08-31T07:23:46.500000000Z")


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_log_that_is_continued_after_the_clock_went_back_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    OutputLog(str(path)).write_output(STDOUT, b"before\n")
    later = path.stat().st_mtime_ns + 3600 * 10**9
    path.write_bytes(HEADER.pack(later, STDOUT, 7) + b"before\n")
    os.utime(path, ns=(later, later))
    frames = read(path)
    OutputLog(str(path)).write_output(STDOUT, b"after\n")
    assert [frame.data for frame in read(path, cursor_after(frames))] == [b"after\n"]


def test_the_log_reports_output_that_a_full_disk_lost(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = OutputLog(str(path))
    log.write_output(STDOUT, b"before\n")
    with full_disk(path.stat().st_size + 20):
        log.write_output(STDOUT, b"lost" * 100)
        log.write_output(STDOUT, b"lost" * 100)
    log.write_output(STDOUT, b"after\n")
    frames = read(path)
    assert [frame.data for frame in frames] == [
        b"before\n",
        b"[riseml: 800 bytes of output are lost, the disk was full]\n",
        b"after\n",
    ]
    assert [frame.stream for frame in frames] == [1, 3, 1]
