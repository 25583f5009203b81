"""Combine many states into one. A roll-up of nothing is an error, never a success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from riseml.base.names import JobName
from riseml.base.states import TERMINAL, Reason, State
from riseml.model import Experiment

_ACTIVE = (State.RUNNING, State.STARTING, State.BUILDING, State.PENDING, State.CREATED)

_EARLY_ENDS = frozenset({Reason.STOPPED_EARLY, Reason.NOT_FINITE})
"""Reasons of good ends that are not the end of the user's code."""


class SetMember(Protocol):
    """One member of a set for `roll_up_set`: a record of an experiment, or its state in a log."""

    @property
    def state(self) -> State:
        """Its state."""

    @property
    def reason(self) -> Reason:
        """Why it is in this state."""

    @property
    def started_at(self) -> datetime | str | None:
        """When its first job started; None: no job has run."""


def roll_up_set(
    experiments: Sequence[SetMember], *, goes_on: bool = False, failure: Reason | None = None
) -> tuple[State, Reason]:
    """Return the state of a set: of its most advanced member while one is active, then a summary of how the members
    ended.

    A set is RUNNING from its first running job until all members have ended, also between two members.
    A set with a finished member is FINISHED, however the others ended (RiseML 1.2.3). Otherwise it is FAILED when a
    member failed, or else KILLED when one was killed. A member that its search has stopped early has not finished.
    A set whose search has failed is FAILED when all its members have ended.

    Args:
        experiments: the members.
        goes_on: a search may make further members, so that the set has not ended even if all members have.
        failure: why its search has failed; None: it has not, or there is none.

    Raises:
        ValueError: the set has no members.
    """
    if not experiments:
        raise ValueError("a set has at least one experiment")
    states = {experiment.state for experiment in experiments}
    if states <= TERMINAL and goes_on:
        return State.RUNNING, Reason.RUNNING
    if states <= TERMINAL:
        return _roll_up_ended(experiments) if failure is None else (State.FAILED, failure)
    state = next(state for state in _ACTIVE if state in states)
    reason = next(experiment.reason for experiment in experiments if experiment.state is state)
    return State.RUNNING if any(experiment.started_at for experiment in experiments) else state, reason


def _roll_up_ended(experiments: Sequence[SetMember]) -> tuple[State, Reason]:
    """Return the state of a set whose members have all ended."""
    states = {experiment.state for experiment in experiments}
    if any(experiment.state is State.FINISHED and experiment.reason not in _EARLY_ENDS for experiment in experiments):
        return State.FINISHED, Reason.COMPLETED
    if State.FAILED in states:
        return State.FAILED, Reason.NONE_FINISHED
    return (State.KILLED, Reason.KILLED_BY_USER) if State.KILLED in states else (State.FINISHED, Reason.COMPLETED)


def describe_set_end(experiments: Sequence[SetMember], best: str = "") -> str:
    """Return a sentence on how the members of a set ended; empty while one is active.

    Example: `6 of 8 finished, 1 stopped early, 1 failed, best 144.3 accuracy 0.981`.

    Args:
        experiments: the members.
        best: a phrase about the best member; empty: the best member is not known.
    """
    states = [experiment.state for experiment in experiments]
    if not set(states) <= TERMINAL:
        return ""
    stopped = sum(experiment.state is State.FINISHED and experiment.reason in _EARLY_ENDS for experiment in experiments)
    counts = [
        (stopped, "stopped early"),
        (states.count(State.FAILED), "failed"),
        (states.count(State.KILLED), "killed"),
    ]
    parts = [f"{states.count(State.FINISHED) - stopped} of {len(states)} finished"]
    return ", ".join([*parts, *(f"{count} {word}" for count, word in counts if count), *([best] if best else [])])


def find_usual_failure(experiments: Sequence[Experiment]) -> Experiment | None:
    """Return the first member of a set that failed for the reason for which most of them failed; None: none failed."""
    failed = [experiment for experiment in experiments if experiment.state is State.FAILED]
    counts = Counter(_describe_failure(experiment) for experiment in failed)
    return max(
        failed, key=lambda experiment: counts[_describe_failure(experiment)], default=None
    )  # the first of several largest


def _describe_failure(experiment: Experiment) -> tuple[Reason, str]:
    return experiment.reason, experiment.message


def find_failed_job(experiment: Experiment) -> JobName | None:
    """Return the job whose end made the experiment fail; None for a good end, a kill, or a limit of time."""
    verdict = experiment.verdict
    return None if verdict is None or verdict.state is not State.FAILED else verdict.job
