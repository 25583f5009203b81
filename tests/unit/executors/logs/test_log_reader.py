"""The log of a job, as its supervisor writes it and the server reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.base import NotThere
from riseml.executors.logs.log_reader import JobLogReader
from riseml.executors.supervision.output_log import HEADER
from riseml.model import LogCursor


def make_record(text: bytes, at: int = 1) -> bytes:
    """Return a record on stdout."""
    return HEADER.pack(at, 1, len(text)) + text


def read_all(reader: JobLogReader) -> bytes:
    """Return the output that is there now."""
    found = b""
    while frames := reader.read_frames():
        found += b"".join(frame.data for frame in frames)
    return found


def test_a_record_that_is_written_in_parts_is_read_once(tmp_path: Path) -> None:
    path, record = tmp_path / "log", make_record(b"x" * 65536)
    reader = JobLogReader(path, LogCursor())
    assert read_all(reader) == b""
    path.write_bytes(record * 40 + record[:100])
    assert len(read_all(reader)) == 40 * 65536
    with path.open("ab") as file:
        file.write(record[100:])
    assert read_all(reader) == b"x" * 65536


def test_a_length_that_no_supervisor_writes_ends_the_log_and_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(make_record(b"one\n") + HEADER.pack(2, 1, (1 << 32) - 1))
        file.truncate(1 << 33)  # bytes that take no room on the disk
    reader = JobLogReader(path, LogCursor())
    assert [frame.data for frame in reader.read_frames()] == [b"one\n"]
    with pytest.raises(NotThere, match="is damaged at byte 17"):
        reader.read_frames()
