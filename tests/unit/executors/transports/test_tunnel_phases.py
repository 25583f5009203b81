"""The life of a tunnel: every transition by name, and what no history of events can do."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.executors.transports.diagnosis import Diagnosis
from riseml.executors.transports.tunnel_phases import (
    CloseRequested,
    ForwardingReady,
    OpenRequested,
    ReconnectRequested,
    SshEnded,
    TimePassed,
    TunnelEvent,
    TunnelPhase,
    TunnelState,
    TunnelTiming,
    advance,
)

TIMING = TunnelTiming(connect=10, login=10, first_delay=1.0, longest_delay=4.0)
WHY = Diagnosis("no route to host", "is it up?")

NEW = TunnelState()
FIRST = TunnelState(TunnelPhase.CONNECTING, since=100.0, attempt=1)
SECOND = TunnelState(TunnelPhase.CONNECTING, since=100.0, attempt=2, delay=1.0, failure=WHY)
UP = TunnelState(TunnelPhase.UP, since=100.0, attempt=2, delay=2.0)
DOWN = TunnelState(TunnelPhase.DOWN, since=100.0, attempt=2, delay=2.0, failure=WHY)
CLOSED = TunnelState(TunnelPhase.CLOSED, since=100.0, attempt=2, failure=Diagnosis("the tunnel was closed", ""))

CASES: dict[str, tuple[TunnelState, TunnelEvent, float, TunnelState]] = {
    "the first caller starts the first attempt": (NEW, OpenRequested(), 100, FIRST),
    "a second caller changes nothing": (FIRST, OpenRequested(), 101, FIRST),
    "a caller starts nothing while it is down": (DOWN, OpenRequested(), 101, DOWN),
    "nothing to reconnect before the first caller": (NEW, ReconnectRequested(), 100, NEW),
    "ssh is through": (FIRST, ForwardingReady(1), 103, TunnelState(TunnelPhase.UP, 103, 1)),
    "ssh is through after a failure": (SECOND, ForwardingReady(2), 103, TunnelState(TunnelPhase.UP, 103, 2, 1.0)),
    "an earlier ssh was through": (SECOND, ForwardingReady(1), 103, SECOND),
    "ready is said twice": (UP, ForwardingReady(2), 103, UP),
    "the first attempt fails": (FIRST, SshEnded(1, WHY), 103, TunnelState(TunnelPhase.DOWN, 103, 1, 1.0, WHY)),
    "the second attempt fails": (SECOND, SshEnded(2, WHY), 103, TunnelState(TunnelPhase.DOWN, 103, 2, 2.0, WHY)),
    "an earlier ssh has ended": (SECOND, SshEnded(1, WHY), 103, SECOND),
    "ssh has time left": (FIRST, TimePassed(), 119.9, FIRST),
    "the tunnel ends": (UP, SshEnded(2, WHY), 103, TunnelState(TunnelPhase.DOWN, 103, 2, 4.0, WHY)),
    "a tunnel ends that was up for long": (
        UP,
        SshEnded(2, WHY),
        105,
        TunnelState(TunnelPhase.DOWN, 105, 2, 1.0, WHY),
    ),
    "a tunnel that is up has no deadline": (UP, TimePassed(), 1e9, UP),
    "the delay is not over": (DOWN, TimePassed(), 101.9, DOWN),
    "the delay is over": (DOWN, TimePassed(), 102, TunnelState(TunnelPhase.CONNECTING, 102, 3, 2.0, WHY)),
    "a reconnect does not wait": (DOWN, ReconnectRequested(), 101, TunnelState(TunnelPhase.CONNECTING, 101, 3)),
    "a reconnect while it connects": (SECOND, ReconnectRequested(), 101, TunnelState(TunnelPhase.CONNECTING, 101, 3)),
    "a reconnect during the first attempt": (
        FIRST,
        ReconnectRequested(),
        101,
        TunnelState(TunnelPhase.CONNECTING, 101, 2),
    ),
    "a reconnect while it is up": (UP, ReconnectRequested(), 101, UP),
    "an ssh that was killed ends": (DOWN, SshEnded(2, WHY), 101, DOWN),
    "nothing opens a closed tunnel": (CLOSED, OpenRequested(), 101, CLOSED),
    "nothing reconnects a closed tunnel": (CLOSED, ReconnectRequested(), 101, CLOSED),
    "no time opens a closed tunnel": (CLOSED, TimePassed(), 1e9, CLOSED),
    "closing twice is closing once": (CLOSED, CloseRequested(), 101, CLOSED),
}


@pytest.mark.parametrize("case", CASES)
def test_a_transition(case: str) -> None:
    before, event, now, after = CASES[case]
    assert advance(before, event, now, TIMING) == after


def test_an_ssh_that_takes_too_long_is_ended() -> None:
    after = advance(FIRST, TimePassed(), 120.0, TIMING)
    assert (after.phase, after.since, after.delay) == (TunnelPhase.DOWN, 120.0, 1.0)
    assert after.failure is not None
    assert "within 20 s" in after.failure.cause
    assert not after.wants_attempt(1)


@pytest.mark.parametrize("before", [NEW, FIRST, UP, DOWN], ids=lambda state: state.phase.value)
def test_a_tunnel_is_closed_in_every_phase(before: TunnelState) -> None:
    after = advance(before, CloseRequested(), 105.0, TIMING)
    assert after.phase is TunnelPhase.CLOSED
    assert not after.wants_ssh
    assert after.failure is not None


def test_only_an_attempt_without_a_known_failure_makes_callers_wait() -> None:
    waiting = [state for state in (NEW, FIRST, SECOND, UP, DOWN, CLOSED) if state.makes_callers_wait]
    assert waiting == [FIRST]


ATTEMPTS = st.integers(0, 6)
EVENTS: st.SearchStrategy[TunnelEvent] = st.one_of(
    st.just(OpenRequested()),
    st.just(ReconnectRequested()),
    st.just(TimePassed()),
    st.builds(ForwardingReady, ATTEMPTS),
    st.builds(SshEnded, ATTEMPTS, st.just(WHY)),
)
STEPS = st.lists(st.tuples(EVENTS | st.just(CloseRequested()), st.floats(0, 40)), max_size=40)
OPEN_STEPS = st.lists(st.tuples(EVENTS, st.floats(0, 40)), max_size=40)
Steps = list[tuple[TunnelEvent, float]]


def run_steps(steps: Steps, state: TunnelState = NEW, now: float = 0.0) -> list[tuple[TunnelState, float]]:
    """Return every state with its time; each step is an event and the seconds that pass before it."""
    states = [(state, now)]
    for event, seconds in steps:
        now += seconds
        state = advance(state, event, now, TIMING)
        states.append((state, now))
    return states


@given(OPEN_STEPS)
def test_no_history_leaves_a_tunnel_stuck(steps: Steps) -> None:
    """An opened tunnel gets up again with two deadlines and one ssh that gets through."""
    state, now = run_steps([(OpenRequested(), 0.0), *steps])[-1]
    if state.phase is TunnelPhase.UP:
        state = advance(state, SshEnded(state.attempt, WHY), now, TIMING)
    while state.phase is TunnelPhase.DOWN:
        deadline = state.find_deadline(TIMING)
        assert deadline is not None
        now = max(now, deadline)
        state = advance(state, TimePassed(), now, TIMING)
    assert state.phase is TunnelPhase.CONNECTING
    assert advance(state, ForwardingReady(state.attempt), now, TIMING).phase is TunnelPhase.UP


@given(STEPS)
def test_every_phase_that_waits_has_a_deadline_that_ends_it(steps: Steps) -> None:
    for state, now in run_steps(steps):
        deadline = state.find_deadline(TIMING)
        if state.phase in (TunnelPhase.CONNECTING, TunnelPhase.DOWN):
            assert deadline is not None
            assert advance(state, TimePassed(), max(now, deadline), TIMING).phase is not state.phase
        else:
            assert deadline is None


@given(STEPS)
def test_a_backoff_is_bounded(steps: Steps) -> None:
    for state, _ in run_steps(steps):
        assert state.delay <= TIMING.longest_delay
        if state.phase is TunnelPhase.DOWN:
            assert state.delay >= TIMING.first_delay


@given(STEPS)
def test_without_a_reconnect_no_attempt_comes_before_the_delay_of_the_last_one(steps: Steps) -> None:
    states = run_steps([(event, seconds) for event, seconds in steps if event != ReconnectRequested()])
    down_since = None
    for (before, _), (after, now) in pairwise(states):
        if after.phase is TunnelPhase.DOWN:
            down_since = after.since
        if after.attempt > before.attempt and down_since is not None:
            assert now >= down_since + TIMING.first_delay


@given(STEPS, STEPS)
def test_a_closed_tunnel_never_runs_ssh(before: Steps, after: Steps) -> None:
    closed, now = run_steps([*before, (CloseRequested(), 0.0)])[-1]
    for state, _ in run_steps(after, closed, now):
        assert state == closed
        assert not any(state.wants_attempt(attempt) for attempt in range(10))


@given(STEPS)
def test_a_tunnel_that_has_no_socket_for_callers_says_why_or_makes_them_wait(steps: Steps) -> None:
    for state, _ in run_steps([(OpenRequested(), 0.0), *steps])[1:]:
        assert state.phase is TunnelPhase.UP or state.makes_callers_wait or state.failure is not None


@given(STEPS)
def test_events_of_an_earlier_attempt_change_nothing(steps: Steps) -> None:
    for state, now in run_steps(steps):
        for attempt in range(state.attempt):
            assert advance(state, SshEnded(attempt, WHY), now, TIMING) == state
            assert advance(state, ForwardingReady(attempt), now, TIMING) == state
