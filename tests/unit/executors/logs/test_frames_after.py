"""The frames of a log that come after a cursor: none is lost, none comes twice, and its end is known."""

from __future__ import annotations

from datetime import datetime
from itertools import dropwhile
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from riseml.executors.docker.log_stream import format_since
from riseml.executors.logs.frames_after import FramesAfter, holds_end
from riseml.model import Frame
from tests.support.cursors import cursor_after, frames


@given(frames, st.integers(0, 20), st.randoms(use_true_random=False))
def test_a_reader_with_a_cursor_loses_and_repeats_nothing(written: list[Frame], held: int, choice: Random) -> None:
    """The two streams have growing timestamps, each for itself; the engine mixes them as it likes."""
    log = _mix_streams(written, choice)
    before, rest = log[:held], log[held:]
    cursor = cursor_after(before)
    again = [frame for frame in log if read_seconds(frame.at) >= float(format_since(cursor) or 0)]
    assert FramesAfter(cursor).keep_new(again) == rest


def _mix_streams(written: list[Frame], choice: Random) -> list[Frame]:
    """Return a log of these frames, in which the timestamps of each stream grow."""
    streams = [sorted((one for one in written if one.stream == stream), key=lambda one: one.at) for stream in (1, 2)]
    log: list[Frame] = []
    while any(streams):
        log.append(choice.choice([stream for stream in streams if stream]).pop(0))
    return log


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.booleans()), max_size=20), st.integers(0, 20))
def test_the_pieces_of_a_long_line_come_once_however_old_its_timestamp_is(
    steps: list[tuple[int, bool]], held: int
) -> None:
    """Every piece has the timestamp of the first one. Engine 20.10 compares each frame with `since`; newer ones send
    all that follow the first frame that is not older."""
    log: list[Frame] = []
    begun: dict[int, str] = {}
    for number, (stream, ends) in enumerate(steps):
        at = begun.setdefault(stream, f"2026-08-31T07:23:{2 * number:02d}Z")
        log.append(Frame(at, stream, b"%d%b" % (number, b"\n" if ends else b"")))
        if ends:
            del begun[stream]
    cursor = cursor_after(log[:held])
    since = float(format_since(cursor) or 0)
    by_old_engine = [one for one in log if read_seconds(one.at) >= since]
    by_new_engine = dropwhile(lambda one: read_seconds(one.at) < since, log)
    for sent in (by_old_engine, by_new_engine):
        assert FramesAfter(cursor).keep_new(sent) == log[held:]


def test_lines_after_the_clock_of_a_host_was_set_back_come() -> None:
    log = [Frame(f"2026-08-31T07:23:{second}Z", 1, b"%d\n" % second) for second in (46, 47, 17, 18)]
    assert FramesAfter(cursor_after(log[:2])).keep_new(log) == log[2:]


def read_seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def test_lines_of_both_streams_that_are_written_out_of_order_come_once() -> None:
    """Seen on a busy machine: the engine had written a line of stderr after a later one of stdout."""
    log = [Frame("2026-11-27T02:15:47.211232093Z", 1, b"10\n"), Frame("2026-11-27T02:15:47.211224428Z", 2, b"touch\n")]
    for held in range(3):
        assert FramesAfter(cursor_after(log[:held])).keep_new(log) == log[held:]


@given(frames, st.integers(0, 20), st.integers(0, 6), st.randoms(use_true_random=False))
def test_the_end_is_held_only_when_all_frames_are(written: list[Frame], held: int, shown: int, choice: Random) -> None:
    log = _mix_streams(written, choice)
    if holds_end(cursor_after(log[:held]), log[len(log) - min(shown, len(log)) :], shown):
        assert held >= len(log)


def test_a_few_last_frames_show_that_the_store_holds_a_log() -> None:
    log = [Frame(f"2026-08-31T07:23:{second}Z", 1 + second % 2, b"%d\n" % second) for second in range(40, 50)]
    assert holds_end(cursor_after(log), log[-3:], 3)
    assert not holds_end(cursor_after(log[:-1]), log[-3:], 3)
    assert not holds_end(cursor_after(log), log[-2:], 2), "an earlier frame of the same stream may have its timestamp"
    pieces = [*log, *[Frame("2026-08-31T07:23:51Z", 1, b"piece")] * 2]
    assert holds_end(cursor_after(pieces), pieces[-4:], 4)
    assert not holds_end(cursor_after(pieces[:-1]), pieces[-4:], 4)
    assert not holds_end(cursor_after(log), [], 4), "an engine that gives no tail shows nothing"


def test_a_tail_that_is_shorter_than_requested_is_the_whole_log() -> None:
    log = [Frame("2026-08-31T07:23:40Z", 1, b"only\n")]
    assert holds_end(cursor_after(log), log, 20)
    assert not holds_end(cursor_after(log), log, 1)
    assert not holds_end(cursor_after(log), log * 2, 20)
