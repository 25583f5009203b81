"""Lines in the records of a log: each once and whole, cut at its limit, with a note where the file is damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import parse_id
from riseml.model import Frame
from riseml.store.logs.line_index import LineIndexes, Selection
from riseml.store.logs.line_state import LONGEST_LINE
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition
from tests.unit.store.logs.ended_logs import COUNT, fill, notes, read_texts
from tests.unit.store.logs.log_frames import KEY, MARK, OTHER, frame, texts


@pytest.mark.parametrize("at_once", [1, 700, 1 << 18])
@pytest.mark.parametrize(("start", "size"), [(0, 4096), (8192, 4096), (12_000, 15_000), (8_000, 100)])
def test_a_hole_of_zeros_is_one_line_between_the_lines_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, start: int, size: int
) -> None:
    monkeypatch.setattr("riseml.store.logs.log_store._READ_AT_ONCE", at_once)
    path = fill(tmp_path)
    whole = read_texts(LogStore(tmp_path))
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(size))
    logs = LogStore(tmp_path)
    found = read_texts(logs)
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
    (note,) = read_texts(logs)
    assert note.startswith("[riseml: the last ")
    assert note.endswith(" bytes of this log are lost, and lines are missing here]")
    logs.mend_log(KEY)
    LogStore(tmp_path).mend_log(KEY)
    assert read_texts(logs) == [note], "it is said once"


def test_zeros_that_a_job_may_have_printed_stay_and_are_noted(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [Frame("2026-08-31T07:23:46Z", 1, b"\0" * size + b"\n") for size in (100, 10_000)])
    found = read_texts(logs)
    assert found[:2] == ["\0" * 100, "\0" * 10_000]
    assert "where the job did not print the zeros before" in found[2]


def test_a_line_that_stays_open_holds_up_no_other_line_and_comes_whole(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"working ")])
    for _ in range(200):
        logs.append_frames(OTHER, [frame(2, b"x" * 16000 + b"\n")])
        logs.append_frames(KEY, [frame(3, b"at a step\n", 2)])
    assert [job for job, _ in texts(logs)] == ["master", "worker.1"] * 200
    logs.append_frames(KEY, [frame(1, b"for hours\n")])
    assert texts(logs)[-1] == ("worker.1", b"working for hours")


@pytest.mark.parametrize("size", [LONGEST_LINE, LONGEST_LINE + 1, 10_000_000])
@pytest.mark.parametrize("again", [False, True], ids=["one server", "the server restarts after each piece"])
def test_a_line_is_cut_once_wherever_it_is_read(tmp_path: Path, size: int, *, again: bool) -> None:
    """The cut is in the file: all readers see the same line, and a restarted server goes on at the same place."""
    logs = LogStore(tmp_path)
    found, mark = [], ReadPosition()
    left = size
    logs.append_frames(KEY, [frame(0, b"before\n")])
    while left:
        part, left = min(left, 16384 * 7), left - min(left, 16384 * 7)
        logs.append_frames(KEY, [frame(1, b"x" * part + (b"" if left else b"\n"))])
        logs.append_frames(KEY, [frame(2, b"beside\n", 2)])
        if again:
            logs.close_experiment(4)
            logs = LogStore(tmp_path)
        blocks, mark = logs.read_blocks(4, mark)
        found += [line.text for block in blocks for line in block.lines()]
    logs.append_frames(KEY, [frame(3, b"behind\n")])
    found += [line.text for line in read_all_lines(logs, 4, mark)]
    wanted = b"x" * min(size, LONGEST_LINE) + (MARK if size > LONGEST_LINE else b"")
    assert [text for text in found if text != b"beside"] == [b"before", wanted, b"behind"]
    assert [line.text for line in read_all_lines(logs, 4)] == found
    assert logs.log_size(4) < LONGEST_LINE + 50_000, "what is cut off is not kept"


def test_the_next_attempt_ends_the_last_line_of_a_lost_one(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"one\n"), frame(2, b"a half")])
    again = replace(KEY, attempt=2)
    logs.append_frames(again, [frame(3, b"first\n"), frame(4, b"second\n")])
    found = list(read_all_lines(logs, 4))
    assert [line.text for line in found] == [b"one", b"a half", b"first", b"second"]
    for number, line in enumerate(found, 1):
        assert list(read_all_lines(logs, 4, line.end)) == found[number:]
