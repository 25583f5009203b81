"""Log files: readers get every line that was written once and in order, after crashes and cuts too."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.model import Frame, FramePosition, JobKey, LogCursor
from riseml.store.logs.line_state import LONGEST_LINE
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition

KEY = JobKey(4, JobName("worker.1"), 1)
OTHER = JobKey(4, JobName("master"), 2)


def frame(index: int, text: bytes, stream: int = 1) -> Frame:
    return Frame(f"2026-08-31T07:23:{index // 10:02d}.{index % 10}Z", stream, text)


def texts(logs: LogStore) -> list[tuple[str, bytes]]:
    return [(line.job, line.text) for line in read_all_lines(logs, 4)]


def test_lines_are_read_in_the_order_of_their_frames(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"one\n"), frame(2, b"two\r\n", 2)])
    logs.append_frames(OTHER, [frame(3, b"\xff\n"), frame(4, b"\n")])
    assert texts(logs) == [("worker.1", b"one"), ("worker.1", b"two\r"), ("master", b"\xff"), ("master", b"")]


def test_a_cursor_counts_the_frames_with_one_timestamp(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a\n"), frame(2, b"b\n"), frame(2, b"c\n")])
    assert logs.find_cursor(KEY) == LogCursor({1: FramePosition("2026-08-31T07:23:00.2Z", 2)})
    assert LogStore(tmp_path).find_cursor(KEY) == logs.find_cursor(KEY), "a new server finds the same cursor"
    assert logs.find_cursor(OTHER) == LogCursor()


def test_a_cursor_says_whether_a_line_goes_on(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for data, goes_on in ((b"a" * 9, True), (b"b" * LONGEST_LINE, True), (b"c" * 9, True), (b"\n", False)):
        logs.append_frames(KEY, [frame(1, data, 2), frame(2, b"between\n")])
        positions = logs.find_cursor(KEY).positions
        assert (positions[1].goes_on, positions[2].goes_on) == (False, goes_on)
        assert LogStore(tmp_path).find_cursor(KEY) == logs.find_cursor(KEY), "a new server finds the same cursor"


def test_a_torn_record_is_cut_off(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a\n")])
    with (tmp_path / "4.log").open("ab") as file:
        file.write(b"1 worker.1 1 2026-08-31T07:23:09Z tor")
    again = LogStore(tmp_path)
    assert again.find_cursor(KEY).positions[1].at == "2026-08-31T07:23:00.1Z"
    again.append_frames(KEY, [frame(2, b"b\n")])
    assert texts(again) == [("worker.1", b"a"), ("worker.1", b"b")]


def test_a_long_line_in_several_frames_is_one_line(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"x" * 9), frame(1, b"y" * 9)])
    logs.append_frames(OTHER, [frame(2, b"between\n")])
    assert texts(logs) == [("master", b"between")], "it waits for no line of another job"
    logs.append_frames(KEY, [frame(1, b"z\n")])
    assert texts(logs) == [("master", b"between"), ("worker.1", b"x" * 9 + b"y" * 9 + b"z")]


@pytest.mark.parametrize("left", ["", '[["train", 1', "[7]"])
def test_a_log_whose_file_of_ends_was_lost_in_a_power_cut_is_read_and_goes_on(tmp_path: Path, left: str) -> None:
    store = LogStore(tmp_path)
    store.append_frames(KEY, [frame(1, b"one\n")])
    store.finish_job(KEY)
    store.close_experiment(KEY.experiment)
    (tmp_path / f"{KEY.experiment}.ends").write_text(left)
    assert store.find_job_ends(KEY.experiment) == {}
    store.append_frames(KEY, [frame(2, b"two\n")])
    store.finish_job(KEY)
    assert store.is_job_finished(KEY)


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


MARK = b" [riseml: line cut at 1 MiB]"


def test_an_endless_line_does_not_hold_up_other_jobs(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for _ in range(100):
        logs.append_frames(KEY, [frame(1, b"x" * 16384)])
    logs.append_frames(OTHER, [frame(2, b"alive\n")])
    assert texts(logs) == [("worker.1", b"x" * LONGEST_LINE + MARK), ("master", b"alive")]


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


def test_the_end_of_a_job_inside_a_cut_line_adds_no_line(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for _ in range(2):
        logs.append_frames(KEY, [frame(1, b"x" * LONGEST_LINE)])
    logs.finish_job(KEY)
    assert texts(logs) == [("worker.1", b"x" * LONGEST_LINE + MARK)]
    assert logs.find_cursor(KEY) == LogCursor({1: FramePosition("2026-08-31T07:23:00.1Z", 2)})


@given(
    st.lists(
        st.tuples(
            st.sampled_from([KEY, OTHER]), st.binary(max_size=40), st.booleans(), st.sampled_from([1, 2]), st.booleans()
        ),
        max_size=30,
    )
)
def test_a_reader_from_any_line_loses_and_repeats_nothing(rows: list[tuple[JobKey, bytes, bool, int, bool]]) -> None:
    """With any lines in pieces, of any jobs, and from any line on."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        logs = LogStore(Path(folder))
        batches: list[tuple[JobKey, list[Frame]]] = []
        for index, (key, text, whole, stream, alone) in enumerate(rows):
            piece = frame(index, text.replace(b"\n", b"") + (b"\n" if whole else b""), stream)
            if batches and batches[-1][0] == key and not alone:
                batches[-1][1].append(piece)
            else:
                batches.append((key, [piece]))
        for key, pieces in batches:
            logs.append_frames(key, pieces)
        for key in (KEY, OTHER):
            logs.append_frames(key, [frame(99, b"the end\n", 1), frame(99, b"the end\n", 2)])
        lines = list(read_all_lines(logs, 4))
        assert len(lines) == 4 + sum(whole for _, _, whole, _, _ in rows)
        for number, line in enumerate(lines):
            rest = list(read_all_lines(logs, 4, line.end))
            assert [replace(one, end=ReadPosition()) for one in rest] == [
                replace(one, end=ReadPosition()) for one in lines[number + 1 :]
            ]


def test_a_position_among_pieces_names_where_the_open_line_began(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a long ")])
    logs.append_frames(OTHER, [frame(2, b"between\n")])
    logs.append_frames(KEY, [frame(1, b"line\n"), frame(3, b"after\n")])
    between, long, after = read_all_lines(logs, 4)
    assert (between.text, long.text, after.text) == (b"between", b"a long line", b"after")
    begun = len(b"a worker.1 1 2026-08-31T07:23:00.1Z a long \n")
    size = begun + len(b"1 master 2 2026-08-31T07:23:00.2Z between\n")
    assert between.end == ReadPosition(size, open_bytes=size)
    assert list(read_all_lines(logs, 4, between.end)) == [long, after]


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


def test_the_next_attempt_ends_the_last_line_of_a_lost_one(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"one\n"), frame(2, b"a half")])
    again = replace(KEY, attempt=2)
    logs.append_frames(again, [frame(3, b"first\n"), frame(4, b"second\n")])
    found = list(read_all_lines(logs, 4))
    assert [line.text for line in found] == [b"one", b"a half", b"first", b"second"]
    for number, line in enumerate(found, 1):
        assert list(read_all_lines(logs, 4, line.end)) == found[number:]


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


def test_frames_that_do_not_fit_on_the_disk_leave_no_trace(tmp_path: Path) -> None:
    """As on a full disk: the system writes the beginning, then refuses; the follower brings the same frames again."""
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [frame(1, b"a\n")])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (logs.log_size(4) + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            logs.append_frames(KEY, [frame(2, b"b\n"), frame(3, b"c\n")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert logs.find_cursor(KEY).positions[1].at == "2026-08-31T07:23:00.1Z"
    logs.append_frames(KEY, [frame(2, b"b\n"), frame(3, b"c\n")])
    assert [text for _, text in texts(logs)] == [b"a", b"b", b"c"]


def test_a_follower_that_holds_a_closed_log_writes_into_no_other_file(tmp_path: Path) -> None:
    logs = LogStore(tmp_path / "logs")
    logs.append_frames(KEY, [frame(1, b"one\n")])
    held = logs._open_file(KEY.experiment)
    logs.close_experiment(KEY.experiment)
    other = tmp_path / "other"
    with other.open("wb"), pytest.raises(OSError, match="closed meanwhile"):  # it has the number that the log had
        held.append_frames(KEY, [frame(2, b"two\n")])
    assert other.read_bytes() == b""
    logs.append_frames(KEY, [frame(2, b"two\n")])
    assert [line.text for line in read_all_lines(logs, KEY.experiment)] == [b"one", b"two"]


def test_logs_of_other_experiments_are_closed(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    for experiment in (3, 4, 5):
        logs.append_frames(replace(KEY, experiment=experiment), [frame(1, b"one\n")])
    logs.close_all_but(frozenset({4}))
    assert set(logs._files) == {4}
