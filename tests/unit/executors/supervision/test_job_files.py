"""Records in places where the code of a job can put anything."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from riseml.executors.supervision.job_files import (
    is_count,
    is_text,
    is_time,
    keep_valid,
    read_bytes,
    read_record,
    says_no_record,
)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"7", b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "torn", "list", "number", "bytes", "deep"],
)
def test_what_is_no_object_is_no_record(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(ValueError):
        read_record(tmp_path / "state.json")


def test_a_record_is_its_object(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"pid": 7}')
    assert read_record(tmp_path / "state.json") == {"pid": 7}


def test_a_fifo_is_empty_and_no_reading_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert read_bytes(tmp_path / "fifo") == b""
    writer = os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK)
    assert read_bytes(tmp_path / "fifo") == b""
    os.close(writer)


def test_no_more_than_a_bound_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 40)
    assert read_bytes(tmp_path / "hole", 10) == bytes(10)


@pytest.mark.parametrize(
    ("number", "is_absent"),
    [(errno.ENOENT, True), (errno.ELOOP, True), (errno.EISDIR, True), (errno.EIO, False), (errno.EMFILE, False)],
)
def test_a_problem_of_a_disk_does_not_say_that_there_is_no_record(number: int, *, is_absent: bool) -> None:
    assert says_no_record(OSError(number, "x")) is is_absent


@pytest.mark.parametrize(
    ("value", "is_a_text", "is_a_count", "is_a_time"),
    [
        ("words", True, False, False),
        ("\udcff", False, False, False),
        (0, False, True, True),
        (-1, False, False, False),
        (2**31, False, False, True),
        (1.5, False, False, True),
        (1e300, False, False, False),
        (float("nan"), False, False, False),
        (None, False, False, False),
        ([7], False, False, False),
    ],
)
def test_a_field_has_the_type_that_the_server_expects(
    value: object, *, is_a_text: bool, is_a_count: bool, is_a_time: bool
) -> None:
    assert (is_text(value), is_count(value), is_time(value)) == (is_a_text, is_a_count, is_a_time)


def test_fields_of_other_types_are_dropped_and_unknown_ones_stay() -> None:
    record = {"pid": "7", "host": "n1", "a field of a later version": [1]}
    assert keep_valid(record, {"pid": is_count, "host": is_text}) == {"host": "n1", "a field of a later version": [1]}
    assert keep_valid([record], {}) == {}
