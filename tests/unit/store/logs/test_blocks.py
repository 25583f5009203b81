"""Successive lines of one job, which readers get as one piece."""

from __future__ import annotations

from pathlib import Path

from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition
from tests.unit.store.logs.log_frames import KEY, OTHER, frame, texts


def test_many_lines_of_one_job_are_one_block(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(index, b"text %d\n" % index) for index in range(50)])
    logs.append_frames(OTHER, [frame(60, b"other\n")])
    logs.append_frames(KEY, [frame(61, b"1 worker.1 1 a text that looks like a record\n")])
    blocks, end = logs.read_blocks(4, ReadPosition())
    assert [block.count for block in blocks] == [50, 1, 1]
    assert end == blocks[-1].end == ReadPosition(logs.log_size(4))
    first, rest = blocks[0].split(20)
    assert first.lines() + rest.lines() == blocks[0].lines()
    assert list(read_all_lines(logs, 4, first.end))[:30] == rest.lines()


def test_lines_behind_the_last_piece_of_a_line_are_one_block(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(0, b"first "), *(frame(index, b"text %d\n" % index) for index in range(50))])
    blocks, end = logs.read_blocks(4, ReadPosition())
    assert [block.count for block in blocks] == [1, 49]
    assert texts(logs)[:2] == [("worker.1", b"first text 0"), ("worker.1", b"text 1")]
    assert end == blocks[-1].end == ReadPosition(logs.log_size(4))
