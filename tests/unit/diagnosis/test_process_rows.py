"""Tests of riseml.diagnosis.process_rows: the answer of the reader as records, whatever a job has made of it."""

from __future__ import annotations

import json

import pytest

from riseml.diagnosis.process_rows import parse_answer
from riseml.diagnosis.spy_dump import UnreadableDump
from riseml.diagnosis.stacks import ProcessStacks
from riseml.job_programs.process_facts import MOST_PROCESSES
from tests.unit.diagnosis.test_spy_dump import make_frame, make_thread


def test_files_of_the_project_are_named_from_its_folder() -> None:
    frames = (make_frame(filename="/jobs/4/worker.1-a1/code/net/model.py"), make_frame(filename="/usr/lib/x.py"))
    row = {"pid": 7, "parent": 1, "state": "S", "command": "python", "wait_channel": "futex", "rank": 1}
    text = json.dumps([{**row, "dump": json.dumps([make_thread("MainThread", *frames)]), "trouble": ""}]).encode()
    (process,) = parse_answer("worker.1", text, "/jobs/4/worker.1-a1/code")
    assert [frame.file for frame in process.threads[0].frames] == ["net/model.py", "/usr/lib/x.py"]
    assert (process.job, process.pid, process.parent, process.rank) == ("worker.1", 7, 1, 1)


def test_fields_of_a_wrong_type_are_left_out_and_names_are_cleaned() -> None:
    row = {"pid": "7", "parent": None, "state": "\x1b[2J", "command": ["x"], "rank": -1, "dump": 7, "trouble": "a\nb"}
    (process,) = parse_answer("ps.1", json.dumps([row]).encode(), "")
    assert process == ProcessStacks("ps.1", 0, 0, "", "\\x1b[2J", trouble="a\\nb")


def test_a_broken_dump_is_the_trouble_of_its_process_alone() -> None:
    (process,) = parse_answer("ps.1", json.dumps([{"dump": "[["}]).encode(), "")
    assert "something else than stacks" in process.trouble
    many = json.dumps([{"pid": 1}] * (MOST_PROCESSES + 5)).encode()
    assert len(parse_answer("ps.1", many, "")) == MOST_PROCESSES


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b"\xff", b"[" * 100_000])
def test_anything_else_is_no_answer(text: bytes) -> None:
    with pytest.raises(UnreadableDump):
        parse_answer("ps.1", text, "")
