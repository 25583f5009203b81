"""The life of an ssh tunnel as a pure function: no threads, no clock, no ssh.

    NEW ---- open ----> CONNECTING ---- ready ----> UP
                        |   ^                       |
          ended, too late   | delay over, reconnect | ended
                        v   |                       |
                        DOWN <----------------------+          any phase ---- close ----> CLOSED

A reconnect while it is CONNECTING begins another attempt, too: the ssh that runs may have read the pinned keys already.
`Tunnel` feeds events to `advance`, and runs ssh exactly while the state requires it.
"""

from __future__ import annotations

import enum
from dataclasses import replace

from riseml.base.records import dataclass
from riseml.executors.transports.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class TunnelTiming:
    """How long a tunnel waits."""

    connect: int = 10  # seconds until sshd has to answer
    login: int = 10  # further seconds until the tunnel has to be up
    alive_interval: int = 5  # seconds of silence until ssh asks whether the other side is alive
    alive_count: int = 3  # questions without an answer until ssh ends
    first_delay: float = 0.5  # seconds between the end of ssh and the next attempt; doubles with every failure
    longest_delay: float = 30.0  # seconds; a tunnel that was up for longer starts again with `first_delay`


class TunnelPhase(enum.Enum):
    """What a tunnel does."""

    NEW = "new"  # no caller has opened it
    CONNECTING = "connecting"  # ssh runs and has not connected
    UP = "up"  # the local socket leads to the engine
    DOWN = "down"  # ssh has ended; the next attempt waits
    CLOSED = "closed"  # the host has left the pool: final


@dataclass(frozen=True, slots=True)
class TunnelState:
    """Everything that decides what a tunnel does next."""

    phase: TunnelPhase = TunnelPhase.NEW
    since: float = 0.0  # monotonic seconds when the phase began
    attempt: int = 0  # number of the attempt; events of an earlier attempt do not count
    delay: float = 0.0  # seconds that DOWN lasts; 0: no attempt has failed since the last reset
    failure: Diagnosis | None = None  # why the last attempt failed; None: unknown yet, callers wait for it

    def wants_attempt(self, attempt: int) -> bool:
        """Return True when the ssh of this attempt has to run."""
        return self.wants_ssh and attempt == self.attempt

    @property
    def wants_ssh(self) -> bool:
        """True when ssh has to run."""
        return self.phase in (TunnelPhase.CONNECTING, TunnelPhase.UP)

    @property
    def makes_callers_wait(self) -> bool:
        """Whether callers wait for the current attempt. After a failure they get the failure at once."""
        return self.phase is TunnelPhase.CONNECTING and self.failure is None

    def find_deadline(self, timing: TunnelTiming) -> float | None:
        """Return the monotonic second when `TimePassed` changes the phase; None: only another event does."""
        if self.phase is TunnelPhase.CONNECTING:
            return self.since + timing.connect + timing.login
        return self.since + self.delay if self.phase is TunnelPhase.DOWN else None


@dataclass(frozen=True, slots=True)
class OpenRequested:
    """A caller needs the tunnel."""


@dataclass(frozen=True, slots=True)
class ReconnectRequested:
    """Start the next attempt at once: the user has pinned a key."""


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """The host has left the pool."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The deadline of the phase may be over."""


@dataclass(frozen=True, slots=True)
class ForwardingReady:
    """ssh has logged in and listens on the local socket."""

    attempt: int


@dataclass(frozen=True, slots=True)
class SshEnded:
    """ssh has ended, or did not start."""

    attempt: int
    failure: Diagnosis


TunnelEvent = OpenRequested | ReconnectRequested | CloseRequested | TimePassed | ForwardingReady | SshEnded

_CLOSED = Diagnosis("the tunnel was closed", "the host has left the pool")


def advance(state: TunnelState, event: TunnelEvent, now: float, timing: TunnelTiming) -> TunnelState:
    """Return the state after an event. An event that the phase does not expect changes nothing.

    Args:
        state: the state before.
        event: what happened.
        now: monotonic seconds.
        timing: how long the phases last.
    """
    deadline = state.find_deadline(timing)
    match state.phase, event:
        case TunnelPhase.CLOSED, _:
            return state
        case _, CloseRequested():
            return replace(state, phase=TunnelPhase.CLOSED, since=now, failure=_CLOSED)
        case TunnelPhase.NEW, OpenRequested():
            return _start_attempt(state, now)
        case ((TunnelPhase.DOWN | TunnelPhase.CONNECTING), ReconnectRequested()):
            return _start_attempt(replace(state, delay=0.0, failure=None), now)
        case TunnelPhase.DOWN, TimePassed() if deadline is not None and now >= deadline:
            return _start_attempt(state, now)
        case TunnelPhase.CONNECTING, TimePassed() if deadline is not None and now >= deadline:
            return _end_attempt(state, _describe_late(timing), now, timing)
        case TunnelPhase.CONNECTING, ForwardingReady(attempt) if attempt == state.attempt:
            return replace(state, phase=TunnelPhase.UP, since=now, failure=None)
        case ((TunnelPhase.CONNECTING | TunnelPhase.UP), SshEnded(attempt, failure)) if attempt == state.attempt:
            return _end_attempt(state, failure, now, timing)
    return state


def _start_attempt(state: TunnelState, now: float) -> TunnelState:
    return replace(state, phase=TunnelPhase.CONNECTING, since=now, attempt=state.attempt + 1)


def _end_attempt(state: TunnelState, failure: Diagnosis, now: float, timing: TunnelTiming) -> TunnelState:
    """Go down for twice as long as the last time, or for the first delay after a tunnel that was up for long."""
    was_up_for_long = state.phase is TunnelPhase.UP and now - state.since > timing.longest_delay
    starts_over = state.delay == 0 or was_up_for_long
    delay = timing.first_delay if starts_over else min(2 * state.delay, timing.longest_delay)
    return replace(state, phase=TunnelPhase.DOWN, since=now, delay=delay, failure=failure)


def _describe_late(timing: TunnelTiming) -> Diagnosis:
    return Diagnosis(
        f"ssh did not get through within {timing.connect + timing.login} s",
        "is the host busy, or does its login ask a question?",
    )
