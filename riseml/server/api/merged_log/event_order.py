"""Decide whether the merged stream sends the end of a job now, or waits for lines of the job. Pure.

A host dates the end of a job and the job's lines, pipes deliver them in any order, and clocks differ. The stream
therefore sends the end after the last line of the job, whatever the timestamps are. It does not wait forever: the lines
of a lost host never arrive.
"""

from __future__ import annotations

import enum

from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, JobDuty, Reason
from riseml.model import Experiment
from riseml.store.experiments import StateEvent

PATIENCE = 5.0
"""Seconds without any line of the experiment after which the end of a job waits no longer."""

_OLD = 60.0  # seconds after the end of a job; a follower that can read its log has read it by then
_PRINTED_NOTHING = frozenset({Reason.CACHED, Reason.START_FAILED})
_LOG_IS_GONE = frozenset({Reason.VANISHED, Reason.HOST_LOST, Reason.INTERNAL})


class EventDecision(enum.Enum):
    """The decision about an event."""

    READY = "send it: every line that belongs before it has been sent"
    WAIT = "hold it: lines that belong before it may still come"
    LOST = "send it: lines that belong before it may be missing, and will not arrive any more"


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of a job's log when the end of the job is the next event."""

    sent: int  # bytes of the log file that were sent
    end: int | None  # offset after the job's last record; None until the log is complete
    has_more: bool  # the file may hold records behind `sent`
    is_closed: bool  # no host has containers of the experiment any more, so the log does not grow
    has_started: bool  # False: the job ended before it ran
    age: float  # seconds since the job ended
    quiet: float  # seconds for which the end has waited while no line came


def decide_event(event: StateEvent, log: LogState) -> EventDecision:
    """Decide whether the stream sends an event now; only the end of a job ever waits.

    Example:
        >>> decide_event(master_finished, LogState(900, 1000, True, False, True, 0.1, 0.0))  # 100 bytes are left
        <EventDecision.WAIT: ...>
    """
    if event.job is None or event.state not in TERMINAL:
        return EventDecision.READY
    if log.end is not None:
        return _decide_with_complete_log(log, log.end)
    if not log.has_started or event.reason in _PRINTED_NOTHING:
        return EventDecision.READY
    if log.is_closed or event.reason in _LOG_IS_GONE or log.age >= _OLD:
        return EventDecision.LOST
    return _wait_or_give_up(log)


def _decide_with_complete_log(log: LogState, end: int) -> EventDecision:
    if log.sent >= end:
        return EventDecision.READY
    if log.is_closed:
        return EventDecision.WAIT if log.has_more else EventDecision.LOST
    return _wait_or_give_up(log)


def _wait_or_give_up(log: LogState) -> EventDecision:
    return EventDecision.LOST if log.quiet >= PATIENCE else EventDecision.WAIT


def has_started(experiment: Experiment, event: StateEvent) -> bool:
    """Return False when the event belongs to the last attempt of a job, and this attempt never ran."""
    return not any(
        job.name == event.job
        and job.attempt == event.attempt
        and job.part is not JobDuty.PREPARES
        and job.started_at is None
        for job in experiment.jobs
    )
