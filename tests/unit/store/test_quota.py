"""A job that prints without end: its log is cut once, with a line that says so; the logs of other jobs are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.base.settings import read_settings
from riseml.store.logs.log_store import LogStore, read_all_lines
from tests.support.rig import Rig, single
from tests.unit.store.logs.log_frames import KEY, OTHER, frame

LIMIT = 1000
MARK = b"[riseml: the log of worker.1 has reached its limit of 1,000 bytes; the rest is not kept]"
HEAD = len("1 worker.1 1 2026-08-31T07:23:46.1Z ")
"""Bytes that each line of the tests takes besides its text."""


def texts(logs: LogStore, job: str = "worker.1") -> list[bytes]:
    return [line.text for line in read_all_lines(logs, KEY.experiment) if line.job == job]


def test_the_log_of_one_job_is_cut_once(tmp_path: Path) -> None:
    logs = LogStore(tmp_path, LIMIT)
    for number in range(20):
        logs.append_frames(KEY, [frame(number, b"x" * 99 + b"\n")])
        logs.append_frames(OTHER, [frame(number, b"y\n")])
    assert texts(logs) == [b"x" * 99] * 8 + [MARK]
    assert len(texts(logs, "master")) == 20


def test_empty_lines_count_with_what_is_before_them(tmp_path: Path) -> None:
    logs = LogStore(tmp_path, 100 * LIMIT)
    for _ in range(300):
        logs.append_frames(KEY, [frame(number, b"\n") for number in range(100)])
    size = logs.log_size(KEY.experiment)
    assert 99 * LIMIT * (HEAD + 1) // (HEAD + 2) < size < 100 * LIMIT + len(MARK) + 3 * HEAD


def test_the_cut_ends_a_line_in_pieces(tmp_path: Path) -> None:
    logs = LogStore(tmp_path, LIMIT)
    logs.append_frames(KEY, [frame(1, b"x" * 600)])
    logs.append_frames(KEY, [frame(1, b"x" * 600), frame(1, b"x" * 600), frame(2, b"never\n")])
    logs.finish_job(KEY)
    assert texts(logs) == [b"x" * 1200, MARK]


def test_the_cut_keeps_the_open_line_of_the_other_stream(tmp_path: Path) -> None:
    logs = LogStore(tmp_path, LIMIT)
    logs.append_frames(KEY, [frame(1, b"half", 1)])
    logs.append_frames(KEY, [frame(2, b"e" * 1000 + b"\n", 2), frame(3, b"never\n", 2)])
    logs.append_frames(KEY, [frame(4, b"never\n", 1)])
    logs.finish_job(KEY)
    assert set(texts(logs)) == {b"half", b"e" * 1000, MARK}


def test_a_restarted_server_goes_on_counting(tmp_path: Path) -> None:
    limit = 3 << 20
    kept = limit // (HEAD + 1024 + 1) + 1  # the first line beyond the limit is kept
    LogStore(tmp_path, limit).append_frames(KEY, [frame(1, b"x" * 1023 + b"\n")] * 2000)
    logs = LogStore(tmp_path, limit)
    logs.append_frames(KEY, [frame(2, b"x" * 1023 + b"\n")] * 2000)
    assert len(texts(logs)) == kept + 1
    again = LogStore(tmp_path, limit)
    again.append_frames(KEY, [frame(3, b"more\n")])
    assert len(texts(again)) == kept + 1, "the log has the mark once"
    logs.close_experiment(KEY.experiment)
    assert os.listdir(tmp_path) == ["4.log"]


@pytest.mark.parametrize("text", ["x", "-1", "0", "3GiB", "1 GiB!"])
def test_a_limit_that_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="RISEML_LOG_LIMIT"):
        read_settings({"RISEML_LOG_LIMIT": text})


def test_a_job_that_floods_its_log_finishes(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig("home", RISEML_LOG_LIMIT="300KB")
    rig.start()
    rig.submit(single("seq -f '%.0f of a long sequence of lines' 20000; exit 0"))
    assert rig.wait_closed("1")["state"] == "FINISHED"
    *lines, last = rig.lines("1.train")
    assert last == "1.train [riseml: the log of train has reached its limit of 307,200 bytes; the rest is not kept]"
    assert lines == [f"1.train {number + 1} of a long sequence of lines" for number in range(len(lines))]
    assert (rig.home / "logs" / "1.log").stat().st_size < 307_200 + 70_000


def test_an_empty_file_of_counts_stops_no_log(tmp_path: Path) -> None:
    (tmp_path / f"{KEY.experiment}.counts").write_text("")
    logs = LogStore(tmp_path, LIMIT)
    logs.append_frames(KEY, [frame(1, b"one\n")])
    assert texts(logs) == [b"one"]
