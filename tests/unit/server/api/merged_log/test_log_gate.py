"""The gate between the end of a job and the job's last lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.base.states import TERMINAL, Reason, State
from riseml.server.api.merged_log.log_gate import PATIENCE, Gate, LogState, gate
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

CASES: dict[str, tuple[StateEvent, LogState, Gate]] = {
    "an experiment ends": (replace(END, job=None), RUNS_ON, Gate.READY),
    "a job runs": (replace(END, state=State.RUNNING, reason=Reason.SUBMITTED), RUNS_ON, Gate.READY),
    "all lines were sent": (END, COMPLETE, Gate.READY),
    "all lines were sent, and lines of other jobs too": (END, replace(COMPLETE, sent=2000), Gate.READY),
    "one record was not sent": (END, BEHIND, Gate.WAIT),
    "one record was not sent, though the end is old": (END, replace(BEHIND, age=1e6), Gate.WAIT),
    "one record was not sent, though the host is lost": (replace(END, reason=Reason.HOST_LOST), BEHIND, Gate.WAIT),
    "one record cannot be read": (END, replace(BEHIND, has_more=False, quiet=PATIENCE), Gate.LOST),
    "nothing runs, and the file goes on": (END, replace(BEHIND, is_closed=True), Gate.WAIT),
    "nothing runs, and the file is shorter": (END, replace(BEHIND, is_closed=True, has_more=False), Gate.LOST),
    "nothing runs, and the log was never complete": (END, replace(RUNS_ON, is_closed=True), Gate.LOST),
    "the follower still reads": (END, RUNS_ON, Gate.WAIT),
    "the follower still reads after 59 seconds": (END, replace(RUNS_ON, age=59.0), Gate.WAIT),
    "the follower had a minute": (END, replace(RUNS_ON, age=60.0), Gate.LOST),
    "no line came for as long as the patience": (END, replace(RUNS_ON, quiet=PATIENCE), Gate.LOST),
    "no line came for nearly as long": (END, replace(RUNS_ON, quiet=PATIENCE - 0.01), Gate.WAIT),
    "the job never ran": (replace(END, state=State.KILLED), replace(RUNS_ON, has_started=False), Gate.READY),
    "the environment was there already": (replace(END, reason=Reason.CACHED), RUNS_ON, Gate.READY),
    "the start failed": (replace(END, reason=Reason.START_FAILED), RUNS_ON, Gate.READY),
    "the host is lost": (replace(END, reason=Reason.HOST_LOST), RUNS_ON, Gate.LOST),
    "the container vanished": (replace(END, reason=Reason.VANISHED), RUNS_ON, Gate.LOST),
    "riseml failed": (replace(END, reason=Reason.INTERNAL), RUNS_ON, Gate.LOST),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gate_decides_each_case(case: str) -> None:
    event, log, expected = CASES[case]
    assert gate(event, log) is expected


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
        assert gate(event, log) is Gate.READY


@given(EVENTS, LOGS)
def test_an_end_is_never_ready_before_the_last_record_of_a_complete_log(event: StateEvent, log: LogState) -> None:
    if event.job is not None and event.state in TERMINAL and log.end is not None:
        assert (gate(event, log) is Gate.READY) == (log.sent >= log.end)


@given(EVENTS, LOGS)
def test_no_event_waits_forever(event: StateEvent, log: LogState) -> None:
    read_to_its_end = replace(log, has_more=False)
    assert gate(event, replace(read_to_its_end, quiet=PATIENCE)) is not Gate.WAIT
    assert gate(event, replace(read_to_its_end, is_closed=True)) is not Gate.WAIT


@given(EVENTS, LOGS, OFFSETS)
def test_an_event_that_may_be_sent_may_be_sent_later_too(event: StateEvent, log: LogState, more: int) -> None:
    if gate(event, log) is not Gate.WAIT:
        assert gate(event, replace(log, sent=log.sent + more)) is not Gate.WAIT


# --- cursors as text ---


@pytest.mark.parametrize(
    ("text", "position"),
    [("0.0", StreamPosition()), ("7.120", StreamPosition(7, 120)), ("7.120.3", StreamPosition(7, 120, 3))],
)
def test_the_text_of_a_cursor_stays_as_clients_know_it(text: str, position: StreamPosition) -> None:
    assert str(position) == text
    assert parse_stream_cursor(f"{text},{text}", 2) == (position, position)
