"""The file of a log: what a crash, a full disk or a person leaves of it is found out when it is opened."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from riseml.base.errors import LogUnreadable, StoreError
from riseml.model import Frame, FramePosition, LogCursor
from riseml.store.logs.line_state import LONGEST_LINE
from riseml.store.logs.log_store import LogFence, LogStore, read_all_lines
from riseml.store.logs.read_position import ReadPosition
from tests.unit.store.logs.ended_logs import fill, read_texts
from tests.unit.store.logs.log_frames import KEY, OTHER, frame, texts


def test_a_log_that_lost_its_end_says_so_at_its_end(tmp_path: Path) -> None:
    path = fill(tmp_path)
    size = path.stat().st_size
    os.truncate(path, 1_000)
    logs = LogStore(tmp_path)
    logs.mend_log(KEY)
    *kept, note = read_texts(logs)
    assert kept == [f"line {number}" for number in range(len(kept))]
    assert f"{size - path.read_bytes().rindex(b'3 worker.1'):,} bytes of this log are lost" in note


def test_a_log_that_was_removed_is_one_line(tmp_path: Path) -> None:
    path = fill(tmp_path)
    path.unlink()
    logs = LogStore(tmp_path)
    assert read_texts(logs) == []
    logs.mend_log(KEY)
    logs.mend_log(KEY)
    assert read_texts(logs) == [f"[riseml: the log was lost, or never arrived: {path} is missing]"]


def test_a_log_that_is_removed_while_its_job_runs_is_written_again_from_its_host(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    logs.append_frames(KEY, [Frame("2026-08-31T07:23:46Z", 1, b"one\n")])
    (tmp_path / "4.log").unlink()
    with pytest.raises(OSError, match="was removed"):
        logs.append_frames(KEY, [Frame("2026-08-31T07:23:47Z", 1, b"two\n")])
    assert logs.find_cursor(KEY) == LogCursor(), "the follower begins at the beginning"
    logs.append_frames(KEY, [Frame(f"2026-08-31T07:23:4{at}Z", 1, text) for at, text in ((6, b"one\n"), (7, b"two\n"))])
    assert read_texts(logs) == ["one", "two"]


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


def test_a_former_server_that_has_a_log_open_writes_into_a_file_that_no_reader_finds(tmp_path: Path) -> None:
    old = LogStore(tmp_path)
    old.append_frames(KEY, [frame(1, b"one\n"), frame(2, b"two, and then")])
    new = LogStore(tmp_path, fence=LogFence(renews_files=True))
    new.renew_files([KEY.experiment, KEY.experiment + 1])
    held = old._files[KEY.experiment]
    held.append_frames(KEY, [frame(3, b" late\n")])
    new.append_frames(KEY, [frame(3, b" on\n")])
    assert read_texts(new) == ["one", "two, and then on"]
    with pytest.raises(OSError, match="was removed"):
        old.append_frames(KEY, [frame(4, b"late\n")])


def test_a_server_that_may_have_lost_its_claim_writes_into_no_log(tmp_path: Path) -> None:
    def refuse() -> None:
        raise StoreError("the claim is not renewed")

    logs = LogStore(tmp_path, fence=LogFence(refuse))
    with pytest.raises(OSError, match="the claim is not renewed"):
        logs.append_frames(KEY, [frame(1, b"one\n")])
    with pytest.raises(OSError, match="the claim is not renewed"):
        logs.finish_job(KEY)
    assert read_texts(LogStore(tmp_path)) == []
