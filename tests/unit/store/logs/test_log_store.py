"""The logs of experiments: readers get every line that was written once and in order, after the end of a job too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.model import FramePosition, LogCursor
from riseml.store.logs.line_state import LONGEST_LINE
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition
from tests.unit.store.logs.log_frames import KEY, MARK, OTHER, frame, texts


def test_lines_are_read_in_the_order_of_their_frames(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"one\n"), frame(2, b"two\r\n", 2)])
    logs.append_frames(OTHER, [frame(3, b"\xff\n"), frame(4, b"\n")])
    assert texts(logs) == [("worker.1", b"one"), ("worker.1", b"two\r"), ("master", b"\xff"), ("master", b"")]


def test_readers_at_the_same_place_share_a_read_until_the_log_is_closed(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"one\n")])
    (first,), end = logs.read_blocks(KEY.experiment, ReadPosition())
    logs.append_frames(KEY, [frame(2, b"two\n")])
    (second,), last = logs.read_blocks(KEY.experiment, end)
    blocks, again = logs.read_blocks(KEY.experiment, end)
    assert blocks[0] is second and again == last
    (shared,), place = logs.read_blocks(KEY.experiment, ReadPosition())
    assert shared is first and place == end, "the rest comes with the next read"
    logs.close_experiment(KEY.experiment)
    (whole,), place = logs.read_blocks(KEY.experiment, ReadPosition())
    assert whole.data == first.data + second.data and place == last
    assert logs.read_blocks(KEY.experiment, last) == ([], last)
    logs.append_frames(KEY, [frame(3, b"three\n")])
    (whole,), _ = logs.read_blocks(KEY.experiment, ReadPosition())
    assert whole.data.count(b"\n") == 3, "a file that was opened again is read again"


def test_a_long_line_in_several_frames_is_one_line(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"x" * 9), frame(1, b"y" * 9)])
    logs.append_frames(OTHER, [frame(2, b"between\n")])
    assert texts(logs) == [("master", b"between")], "it waits for no line of another job"
    logs.append_frames(KEY, [frame(1, b"z\n")])
    assert texts(logs) == [("master", b"between"), ("worker.1", b"x" * 9 + b"y" * 9 + b"z")]


def test_an_open_line_ends_with_its_job(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"no newline")])
    logs.finish_job(KEY)
    logs.finish_job(KEY)
    assert texts(logs) == [("worker.1", b"no newline")]
    assert logs.find_cursor(KEY).positions[1].frames_held == 1


def test_open_lines_of_both_streams_end_with_their_job(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"out", 1), frame(2, b"err", 2), frame(3, b" goes on\n", 2)])
    assert texts(logs) == [("worker.1", b"err goes on")], "the first line may go on"
    again = LogStore(tmp_path)
    again.append_frames(KEY, [frame(4, b"more", 2)])
    again.finish_job(KEY)
    assert sorted(texts(again)) == [("worker.1", b"err goes on"), ("worker.1", b"more"), ("worker.1", b"out")]


def test_an_endless_line_does_not_hold_up_other_jobs(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for _ in range(100):
        logs.append_frames(KEY, [frame(1, b"x" * 16384)])
    logs.append_frames(OTHER, [frame(2, b"alive\n")])
    assert texts(logs) == [("worker.1", b"x" * LONGEST_LINE + MARK), ("master", b"alive")]


def test_the_end_of_a_job_inside_a_cut_line_adds_no_line(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for _ in range(2):
        logs.append_frames(KEY, [frame(1, b"x" * LONGEST_LINE)])
    logs.finish_job(KEY)
    assert texts(logs) == [("worker.1", b"x" * LONGEST_LINE + MARK)]
    assert logs.find_cursor(KEY) == LogCursor({1: FramePosition("2026-08-31T07:23:00.1Z", 2)})


@pytest.mark.parametrize("again", [False, True], ids=["one server", "another server"])
def test_the_last_lines_of_lost_jobs_end_with_their_log(tmp_path: Path, *, again: bool) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a half"), frame(1, b"error", 2)])
    logs.append_frames(OTHER, [frame(2, b"a part")])
    if again:
        logs.close_all_but(frozenset())
        logs = LogStore(tmp_path)
    logs.end_open_lines(4)
    logs.close_experiment(4)
    assert texts(logs) == [("worker.1", b"a half"), ("worker.1", b"error"), ("master", b"a part")]
    logs.end_open_lines(5)
    assert not (tmp_path / "5.log").exists(), "an experiment that never ran gets no log"


def test_a_reader_between_the_last_line_of_an_attempt_and_the_next_one_loses_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(OTHER, [frame(1, b"open for long ")])
    logs.append_frames(KEY, [frame(2, b"a half"), frame(2, b"part", 2)])
    logs.append_frames(replace(KEY, attempt=2), [frame(3, b"fir"), frame(4, b"st\n")])
    logs.append_frames(OTHER, [frame(5, b"line\n")])
    found = list(read_all_lines(logs, 4))
    assert [line.text for line in found] == [b"a half", b"part", b"first", b"open for long line"]
    for number, line in enumerate(found, 1):
        assert list(read_all_lines(logs, 4, replace(line.end))) == found[number:]


def test_a_log_of_an_earlier_version_shows_the_last_line_of_a_lost_attempt(tmp_path: Path) -> None:
    """That version did not end the line itself."""
    rows = ["a worker.1 1 T1 a half", "1 worker.1 2 T2 first", "1 worker.1 1 T3 late", "1 worker.1 2 T4 second"]
    (tmp_path / "4.log").write_text("".join(f"{row}\n" for row in rows))
    assert [text for _, text in texts(LogStore(tmp_path))] == [b"a half", b"first", b"late", b"second"]


def test_the_last_lines_of_a_job_are_whole_however_far_they_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riseml.store.logs.log_store._NEAR_END", 500)
    logs = LogStore(tmp_path)
    assert logs.read_last_lines(KEY, 2) == []
    logs.append_frames(KEY, [frame(1, b"begun "), frame(1, b"x" * 400, 2)])
    logs.append_frames(OTHER, [frame(2, b"y" * 100 + b"\n") for _ in range(20)])
    logs.append_frames(KEY, [frame(3, b"x" * 400 + b"\n", 2), frame(4, b"ended\n")])
    assert [line.text for line in logs.read_last_lines(KEY, 2)] == [b"x" * 800, b"begun ended"]
    assert [line.text for line in logs.read_last_lines(KEY, 1)] == [b"begun ended"]
    assert logs.read_last_lines(replace(KEY, attempt=2), 1) == []


def test_lines_longer_than_one_read_are_read_whole(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"x" * 16384) for _ in range(40)])
    logs.append_frames(KEY, [frame(1, b"end\n"), frame(2, b"y" * 400_000 + b"\n"), frame(3, b"z\n")])
    assert [len(text) for _, text in texts(logs)] == [40 * 16384 + 3, 400_000, 1]


def test_logs_of_other_experiments_are_closed(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for experiment in (3, 4, 5):
        logs.append_frames(replace(KEY, experiment=experiment), [frame(1, b"one\n")])
    logs.close_all_but(frozenset({4}))
    assert set(logs._files) == {4}
