"""Whether the end of a job is sent before or after the last lines of the job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.base.states import TERMINAL, Reason, State
from riseml.server.api.merged_log.event_order import PATIENCE, EventDecision, LogState, decide_event
from riseml.server.api.merged_log.stream_cursor import StreamPosition, parse_stream_cursor
from riseml.store.experiments import StateEvent

END = StateEvent(
    id=9,
    job=JobName("master"),
    attempt=1,
    at=datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC),
    state=State.FINISHED,
    reason=Reason.COMPLETED,
    message="",
    exit_code=0,
)
RUNS_ON = LogState(sent=500, end=None, has_more=False, is_closed=False, has_started=True, age=0.1, quiet=0.0)
COMPLETE = replace(RUNS_ON, sent=1000, end=1000)
BEHIND = replace(COMPLETE, sent=999, has_more=True)

CASES: dict[str, tuple[StateEvent, LogState, EventDecision]] = {
    "an experiment ends": (replace(END, job=None), RUNS_ON, EventDecision.READY),
    "a job runs": (replace(END, state=State.RUNNING, reason=Reason.SUBMITTED), RUNS_ON, EventDecision.READY),
    "all lines were sent": (END, COMPLETE, EventDecision.READY),
    "all lines were sent, and lines of other jobs too": (END, replace(COMPLETE, sent=2000), EventDecision.READY),
    "one record was not sent": (END, BEHIND, EventDecision.WAIT),
    "one record was not sent, though the end is old": (END, replace(BEHIND, age=1e6), EventDecision.WAIT),
    "one record was not sent, though the host is lost": (
        replace(END, reason=Reason.HOST_LOST),
        BEHIND,
        EventDecision.WAIT,
    ),
    "one record cannot be read": (END, replace(BEHIND, has_more=False, quiet=PATIENCE), EventDecision.LOST),
    "nothing runs, and the file goes on": (END, replace(BEHIND, is_closed=True), EventDecision.WAIT),
    "nothing runs, and the file is shorter": (END, replace(BEHIND, is_closed=True, has_more=False), EventDecision.LOST),
    "nothing runs, and the log was never complete": (END, replace(RUNS_ON, is_closed=True), EventDecision.LOST),
    "the follower still reads": (END, RUNS_ON, EventDecision.WAIT),
    "the follower still reads after 59 seconds": (END, replace(RUNS_ON, age=59.0), EventDecision.WAIT),
    "the follower had a minute": (END, replace(RUNS_ON, age=60.0), EventDecision.LOST),
    "no line came for as long as the patience": (END, replace(RUNS_ON, quiet=PATIENCE), EventDecision.LOST),
    "no line came for nearly as long": (END, replace(RUNS_ON, quiet=PATIENCE - 0.01), EventDecision.WAIT),
    "the job never ran": (replace(END, state=State.KILLED), replace(RUNS_ON, has_started=False), EventDecision.READY),
    "the environment was there already": (replace(END, reason=Reason.CACHED), RUNS_ON, EventDecision.READY),
    "the start failed": (replace(END, reason=Reason.START_FAILED), RUNS_ON, EventDecision.READY),
    "the host is lost": (replace(END, reason=Reason.HOST_LOST), RUNS_ON, EventDecision.LOST),
    "the container vanished": (replace(END, reason=Reason.VANISHED), RUNS_ON, EventDecision.LOST),
    "riseml failed": (replace(END, reason=Reason.INTERNAL), RUNS_ON, EventDecision.LOST),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gate_decides_each_case(case: str) -> None:
    event, log, expected = CASES[case]
    assert decide_event(event, log) is expected


EVENTS = st.builds(
    replace,
    st.just(END),
    job=st.sampled_from([None, JobName("master")]),
    state=st.sampled_from(State),
    reason=st.sampled_from(Reason),
)
OFFSETS = st.integers(0, 3)
LOGS = st.builds(
    LogState,
    sent=OFFSETS,
    end=st.none() | OFFSETS,
    has_more=st.booleans(),
    is_closed=st.booleans(),
    has_started=st.booleans(),
    age=st.sampled_from([0.0, 59.0, 60.0]),
    quiet=st.sampled_from([0.0, PATIENCE]),
)


@given(EVENTS, LOGS)
def test_only_the_end_of_a_job_waits(event: StateEvent, log: LogState) -> None:
    if event.job is None or event.state not in TERMINAL:
        assert decide_event(event, log) is EventDecision.READY


@given(EVENTS, LOGS)
def test_an_end_is_never_ready_before_the_last_record_of_a_complete_log(event: StateEvent, log: LogState) -> None:
    if event.job is not None and event.state in TERMINAL and log.end is not None:
        assert (decide_event(event, log) is EventDecision.READY) == (log.sent >= log.end)


@given(EVENTS, LOGS)
def test_no_event_waits_forever(event: StateEvent, log: LogState) -> None:
    read_to_its_end = replace(log, has_more=False)
    assert decide_event(event, replace(read_to_its_end, quiet=PATIENCE)) is not EventDecision.WAIT
    assert decide_event(event, replace(read_to_its_end, is_closed=True)) is not EventDecision.WAIT


@given(EVENTS, LOGS, OFFSETS)
def test_an_event_that_may_be_sent_may_be_sent_later_too(event: StateEvent, log: LogState, more: int) -> None:
    if decide_event(event, log) is not EventDecision.WAIT:
        assert decide_event(event, replace(log, sent=log.sent + more)) is not EventDecision.WAIT


# --- cursors as text ---


@pytest.mark.parametrize(
    ("text", "position"),
    [("0.0", StreamPosition()), ("7.120", StreamPosition(7, 120)), ("7.120.3", StreamPosition(7, 120, 3))],
)
def test_the_text_of_a_cursor_stays_as_clients_know_it(text: str, position: StreamPosition) -> None:
    assert str(position) == text
    assert parse_stream_cursor(f"{text},{text}", 2) == (position, position)
