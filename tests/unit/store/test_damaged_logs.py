"""Logs that a power cut, a disk or a person has damaged: one line says where lines are missing, or one sentence why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.errors import LogUnreadable
from riseml.base.names import JobName, parse_id
from riseml.model import Frame, JobKey, LogCursor
from riseml.store.logs.line_index import LineIndexes, Selection
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition

KEY = JobKey(4, JobName("worker.1"), 1)
OTHER = JobKey(4, JobName("master"), 1)
COUNT = 500


def fill(folder: Path) -> Path:
    """Write the log of an experiment that has ended, and return its file."""
    logs = LogStore(folder)
    for key in (KEY, OTHER):
        frames = [Frame(f"2026-08-31T07:23:46.{number:09d}Z", 1, b"line %d\n" % number) for number in range(COUNT)]
        logs.append_frames(key, frames)
        logs.finish_job(key)
    logs.close_experiment(4)
    return folder / "4.log"


def texts(logs: LogStore) -> list[str]:
    return [line.text.decode() for line in read_all_lines(logs, 4)]


def notes(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("[riseml: ")]


@pytest.mark.parametrize("at_once", [1, 700, 1 << 18])
@pytest.mark.parametrize(("start", "size"), [(0, 4096), (8192, 4096), (12_000, 15_000), (8_000, 100)])
def test_a_hole_of_zeros_is_one_line_between_the_lines_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, start: int, size: int
) -> None:
    monkeypatch.setattr("riseml.store.logs.log_store._READ_AT_ONCE", at_once)
    path = fill(tmp_path)
    whole = texts(LogStore(tmp_path))
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(size))
    logs = LogStore(tmp_path)
    found = texts(logs)
    (note,) = notes(found)
    assert "lines are missing" in note
    kept = [line for line in found if "\0" not in line and line != note]
    assert set(kept) <= {*whole, *(line[-1:] for line in whole)} | {line for line in found if line not in whole}
    assert len(kept) >= len(whole) - size // 40 - 2
    assert found[-1] == whole[-1]
    total, page = LineIndexes(logs).read_page(Selection(4, parse_id("4")), 0, 5_000)
    assert [one.line.text.decode() for one in page] == found
    assert total == len(found)
    for line in list(read_all_lines(logs, 4))[:: len(found) // 9]:
        rest = [one.text.decode() for one in read_all_lines(logs, 4, line.end)]
        assert rest == found[len(found) - len(rest) :]


@given(places=st.lists(st.tuples(st.integers(0, 40_000), st.binary(min_size=1, max_size=60)), max_size=6))
def test_no_damage_of_a_file_stops_its_readers(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, bytes]]
) -> None:
    path = fill(tmp_path_factory.mktemp("damaged"))
    data = bytearray(path.read_bytes())
    for place, wrong in places:
        data[place : place + len(wrong)] = wrong
    path.write_bytes(data)
    logs = LogStore(path.parent)
    lines = list(read_all_lines(logs, 4))
    assert len(lines) >= 2 * COUNT - 10 * len(places) - sum(wrong.count(b"\n") for _, wrong in places)
    logs.append_frames(KEY, [Frame("2026-08-31T07:24:00Z", 1, b"behind\n")])
    assert [line.text for line in read_all_lines(logs, 4)][-1] == b"behind"
    logs.read_last_lines(KEY, 5)


def test_a_log_of_zeros_alone_is_one_line(tmp_path: Path) -> None:
    path = fill(tmp_path)
    path.write_bytes(bytes(path.stat().st_size))
    logs = LogStore(tmp_path)
    logs.mend_log(KEY)
    (note,) = texts(logs)
    assert note.startswith("[riseml: the last ")
    assert note.endswith(" bytes of this log are lost, and lines are missing here]")
    logs.mend_log(KEY)
    LogStore(tmp_path).mend_log(KEY)
    assert texts(logs) == [note], "it is said once"


def test_a_log_that_lost_its_end_says_so_at_its_end(tmp_path: Path) -> None:
    path = fill(tmp_path)
    size = path.stat().st_size
    os.truncate(path, 1_000)
    logs = LogStore(tmp_path)
    logs.mend_log(KEY)
    *kept, note = texts(logs)
    assert kept == [f"line {number}" for number in range(len(kept))]
    assert f"{size - path.read_bytes().rindex(b'3 worker.1'):,} bytes of this log are lost" in note


def test_a_log_that_was_removed_is_one_line(tmp_path: Path) -> None:
    path = fill(tmp_path)
    path.unlink()
    logs = LogStore(tmp_path)
    assert texts(logs) == []
    logs.mend_log(KEY)
    logs.mend_log(KEY)
    assert texts(logs) == [f"[riseml: the log was lost, or never arrived: {path} is missing]"]


def test_a_log_that_is_removed_while_its_job_runs_is_written_again_from_its_host(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [Frame("2026-08-31T07:23:46Z", 1, b"one\n")])
    (tmp_path / "4.log").unlink()
    with pytest.raises(OSError, match="was removed"):
        logs.append_frames(KEY, [Frame("2026-08-31T07:23:47Z", 1, b"two\n")])
    assert logs.find_cursor(KEY) == LogCursor(), "the follower begins at the beginning"
    logs.append_frames(KEY, [Frame(f"2026-08-31T07:23:4{at}Z", 1, text) for at, text in ((6, b"one\n"), (7, b"two\n"))])
    assert texts(logs) == ["one", "two"]


def test_a_log_that_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = fill(tmp_path)
    path.unlink()
    path.mkdir()
    logs = LogStore(tmp_path)
    for read in (
        lambda: logs.check_readable(4),
        lambda: logs.mend_log(KEY),
        lambda: logs.read_blocks(4, ReadPosition()),
        lambda: logs.read_last_lines(KEY, 3),
    ):
        with pytest.raises(LogUnreadable, match=r"the log .*4\.log cannot be read: Is a directory"):
            read()


def test_zeros_that_a_job_may_have_printed_stay_and_are_noted(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [Frame("2026-08-31T07:23:46Z", 1, b"\0" * size + b"\n") for size in (100, 10_000)])
    found = texts(logs)
    assert found[:2] == ["\0" * 100, "\0" * 10_000]
    assert "where the job did not print the zeros before" in found[2]
