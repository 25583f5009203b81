"""The sentences about what jobs wrote outside of OUTPUT_DIR."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import JobName
from riseml.server.written_lines import STREAM, describe_written, is_about_files, list_log_lines
from riseml.store.logs.blocks import OutputLine
from riseml.store.logs.read_position import ReadPosition
from riseml.store.written_files import WrittenRecord

KEPT = WrittenRecord(kept_files=1, kept_bytes=2048, kept_names=("model.pt",))
LOST = WrittenRecord(lost_files=2000, lost_bytes=10, lost_names=("a", "b", "c", "d", "e", "f"))


@pytest.mark.parametrize(
    ("records", "sentences"),
    [
        ([], []),
        ([WrittenRecord()], []),
        ([KEPT], ["1 new file (2 KiB) is kept in OUTPUT_DIR: model.pt"]),
        ([KEPT, KEPT], ["2 new files (4 KiB) are kept in OUTPUT_DIR: model.pt"]),
        ([LOST], ["2,000 new files (10 B) were not kept: a, b, c, d, e, ..."]),
        (
            [replace(LOST, more=True, advice="`outputs: a`")],
            [
                "2,000 new files (10 B) or more were not kept: a, b, c, d, e, ...; to keep them, write `outputs: a`"
                " below train in riseml.yml"
            ],
        ),
        ([WrittenRecord(trouble="the disk is full")], ["not every file could be kept: the disk is full"]),
    ],
)
def test_what_was_written_is_counted_and_named(records: list[WrittenRecord], sentences: list[str]) -> None:
    assert describe_written(records) == sentences


def test_lines_about_files_are_told_from_those_of_jobs() -> None:
    (text,) = list_log_lines(KEPT)
    line = OutputLine(JobName("train"), "2026-08-31T07:23:46Z", STREAM, text, ReadPosition())
    assert is_about_files(line)
    assert not is_about_files(replace(line, stream=1))
    assert not is_about_files(replace(line, text=b"other"))
