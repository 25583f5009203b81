"""Lines by their numbers: any page of a log, also while it grows, and where a text is."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import JobName, parse_id
from riseml.model import Frame, JobKey
from riseml.store.logs.levels import LogLevel
from riseml.store.logs.line_index import LineIndexes, Selection
from riseml.store.logs.log_store import LogStore

AT = "2026-08-31T07:23:46Z"
ALL, WORKER = Selection(4, parse_id("4")), Selection(4, parse_id("4.worker.1"))
TEN_THOUSAND = 10_000


def add_lines(logs: LogStore, first: int, count: int, job: str = "master") -> None:
    frames = [Frame(AT, 1, b"line %d\n" % number) for number in range(first, first + count)]
    logs.append_frames(JobKey(4, JobName(job), 1), frames)


@pytest.fixture
def logs(tmp_path: Path) -> LogStore:
    return LogStore(tmp_path / "logs")


def read(lines: LineIndexes, first: int, count: int) -> tuple[int, list[tuple[int, bytes]]]:
    total, found = lines.read_page(ALL, first, count)
    return total, [(one.number, one.line.text) for one in found]


def test_any_page_of_a_log(logs: LogStore) -> None:
    for first in range(0, TEN_THOUSAND, 100):
        add_lines(logs, first, 100)
    lines = LineIndexes(logs)
    for first in (0, 1, 999, 1000, 5555, 9998):
        expected = [(number, b"line %d" % number) for number in range(first, min(first + 3, TEN_THOUSAND))]
        assert read(lines, first, 3) == (TEN_THOUSAND, expected)
    assert read(lines, -2, 5) == (TEN_THOUSAND, [(9998, b"line 9998"), (9999, b"line 9999")])
    assert read(lines, TEN_THOUSAND, 5) == (TEN_THOUSAND, [])
    assert read(lines, -(10**9), 1) == (TEN_THOUSAND, [(0, b"line 0")])


def test_a_log_that_grows_and_one_that_does_not_exist(logs: LogStore) -> None:
    lines = LineIndexes(logs)
    assert read(lines, 0, 5) == (0, [])
    add_lines(logs, 0, 2)
    assert read(lines, 0, 5) == (2, [(0, b"line 0"), (1, b"line 1")])
    add_lines(logs, 2, 1)
    assert read(lines, 2, 5) == (3, [(2, b"line 2")])


def test_the_lines_of_some_jobs(logs: LogStore) -> None:
    lines = LineIndexes(logs)
    add_lines(logs, 0, 2)
    add_lines(logs, 100, 2, job="worker.1")
    add_lines(logs, 2, 1)
    total, found = lines.read_page(WORKER, 0, 10)
    assert (total, [(one.number, one.line.text) for one in found]) == (2, [(0, b"line 100"), (1, b"line 101")])
    assert read(lines, 3, 10)[1] == [(3, b"line 101"), (4, b"line 2")]


def test_a_page_of_long_lines_is_short(logs: LogStore) -> None:
    for _ in range(8):
        logs.append_frames(JobKey(4, JobName("master"), 1), [Frame(AT, 1, b"x" * 600_000 + b"\n")])
    total, found = LineIndexes(logs).read_page(ALL, 0, 8)
    assert total == 8
    assert 0 < len(found) < 8


def test_a_text_is_found_in_parts(logs: LogStore) -> None:
    for first in range(0, 3000, 100):
        add_lines(logs, first, 100)
    lines = LineIndexes(logs)
    assert lines.search(ALL, "LINE 299", 0, 100) == (3000, [299, *range(2990, 3000)], None)
    total, matches, following = lines.search(ALL, "line", 10, 5)
    assert (total, matches) == (3000, [10, 11, 12, 13, 14])
    assert following is not None
    assert lines.search(ALL, "line", following, 2)[1] == [15, 16]
    assert lines.search(ALL, "master", 0, 5)[1] == [], "only texts are searched"


def test_the_lines_of_a_level_know_their_place_among_all(logs: LogStore) -> None:
    lines = LineIndexes(logs)
    for first in range(0, 5000, 100):
        add_lines(logs, first, 99)
        frame = Frame(AT, 1, b"ERROR line %d\n" % (first + 99))
        logs.append_frames(JobKey(4, JobName("master"), 1), [frame])
    errors = Selection(4, parse_id("4"), LogLevel.ERROR)
    total, found = lines.read_page(errors, 30, 2)
    assert total == 50
    assert [(one.number, one.whole, one.line.text) for one in found] == [
        (30, 3099, b"ERROR line 3099"),
        (31, 3199, b"ERROR line 3199"),
    ]
    assert lines.read_page(errors, -1, 5)[1][0].whole == 4999
    assert lines.read_page(ALL, 3099, 1)[1][0].line.text == b"ERROR line 3099"
    assert lines.search(errors, "line 31", 0, 10) == (50, [31], None)
    add_lines(logs, 5000, 10)
    assert lines.read_page(errors, 50, 5) == (50, [])
    assert lines.read_page(Selection(4, parse_id("4.worker.1"), LogLevel.INFO), 0, 5) == (0, [])
