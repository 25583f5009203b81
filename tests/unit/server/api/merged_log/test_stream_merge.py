"""The order of a stream, from tables of events and lines: no store, no log, no clock."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from riseml.base.names import JobName, parse_id
from riseml.base.states import Reason, State
from riseml.model import Experiment
from riseml.server.api.merged_log.event_order import PATIENCE
from riseml.server.api.merged_log.stream_cursor import StreamPosition
from riseml.server.api.merged_log.stream_merge import FollowedLog, ReadTime, StreamMerge
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.store.experiments import StateEvent
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.read_position import ReadPosition
from tests.unit.control.simulation import make_experiment, make_plan

BEGUN = datetime(2026, 8, 31, tzinfo=UTC)
TRAIN = JobName("train")
ROW = len(b"2026-08-31T00:00:00.000000Z a\n")  # bytes of a line in the log of a test


def at(second: float) -> datetime:
    return BEGUN + timedelta(seconds=second)


def make_event(identity: int, second: float, state: State, job: str | None = None) -> StateEvent:
    return StateEvent(identity, None if job is None else JobName(job), 1, at(second), state, Reason.RUNNING, "", None)


def make_block(start: int, *lines: tuple[float, str]) -> LogBlock:
    data = b"".join(f"{at(second):%Y-%m-%dT%H:%M:%S.%f}Z {text}\n".encode() for second, text in lines)
    return LogBlock(TRAIN, 1, data, start, 0, ReadPosition(start + len(data)))


def make_followed(identity: int, state: State, *events: StateEvent) -> FollowedLog:
    record: Experiment = make_experiment(identity, make_plan("train"), state=state)
    jobs = tuple(replace(job, state=state, started_at=at(0)) for job in record.jobs)
    record = replace(record, jobs=jobs, number=identity)
    return FollowedLog(identity, StreamPosition(), record, deque(events), {}, ReadPosition(0))


def make_merge(*followed_logs: FollowedLog) -> StreamMerge:
    keys = tuple(followed.identity for followed in followed_logs)
    positions = tuple(followed.position for followed in followed_logs)
    merge = StreamMerge(StreamRequest(parse_id("1"), keys, follow=True, positions=positions))
    merge.followed.extend(followed_logs)
    merge.unfinished.extend(followed_logs)
    return merge


def show(merge: StreamMerge, second: float = 10) -> list[str]:
    """Return the text or the state of each entry that the merge gives at this second."""
    entries = merge.merge(ReadTime(second, at(second)))
    return [str(entry.get("text", entry.get("state"))) for entry in entries]


def test_events_and_lines_of_two_experiments_come_by_time() -> None:
    first = make_followed(1, State.RUNNING, make_event(1, 1, State.RUNNING), make_event(2, 5, State.FINISHED))
    second = make_followed(2, State.RUNNING, make_event(3, 3, State.RUNNING))
    first.add_blocks([make_block(0, (2, "a"), (4, "b"))], ReadPosition(2 * ROW))
    second.add_blocks([make_block(0, (3.5, "c"), (6, "d"))], ReadPosition(2 * ROW))
    merge = make_merge(first, second)
    assert show(merge) == ["RUNNING", "a", "RUNNING", "c", "b"]
    assert merge.cursor() == f"1.{2 * ROW},3.{ROW}"
    assert merge.holds_event, "the log of the first may go on before its end"


def test_nothing_comes_before_a_log_that_may_have_more_was_read_on() -> None:
    first = make_followed(1, State.RUNNING)
    second = make_followed(2, State.RUNNING)
    first.add_blocks([make_block(0, (1, "a"))], ReadPosition(ROW))
    second.add_blocks([make_block(0, (2, "b"))], ReadPosition(ROW))
    merge = make_merge(first, second)
    assert show(merge) == ["a"]
    assert show(merge) == [], "the first log may have a line before b"
    first.add_blocks([], ReadPosition(ROW))
    assert show(merge) == ["b"]


@pytest.mark.parametrize(
    ("end", "quiet", "expected"),
    [
        (None, 1.0, []),  # the log is not complete
        (None, PATIENCE + 0.1, ["FINISHED"]),  # no line has come for long enough
        (ROW, 1.0, ["FINISHED"]),  # every line was sent
        (2 * ROW, 1.0, []),  # one line is to come
    ],
)
def test_the_end_of_a_job_waits_for_its_last_line(end: int | None, quiet: float, expected: list[str]) -> None:
    followed = make_followed(1, State.RUNNING, make_event(1, 1.5, State.FINISHED, "train"))
    followed.ends = {} if end is None else {(TRAIN, 1): end}
    followed.add_blocks([make_block(0, (1, "a"))], ReadPosition(ROW))
    merge = make_merge(followed)
    assert show(merge, 2) == ["a"]
    followed.add_blocks([], ReadPosition(ROW))
    assert show(merge, 2 + quiet) == expected


def test_a_line_waits_for_the_start_of_its_job_no_longer_than_the_patience() -> None:
    followed = make_followed(1, State.STARTING)
    followed.add_blocks([make_block(0, (1, "a"))], ReadPosition(ROW))
    merge = make_merge(followed)
    assert show(merge, 2.0) == []
    assert merge.holds_event
    assert show(merge, 2.0 + PATIENCE) == ["a"]


def test_a_line_comes_after_the_start_of_its_job_whatever_their_times_are() -> None:
    followed = make_followed(1, State.RUNNING, make_event(1, 3, State.RUNNING, "train"))
    followed.add_blocks([make_block(0, (1, "a"))], ReadPosition(ROW))
    assert show(make_merge(followed)) == ["RUNNING", "a"]
