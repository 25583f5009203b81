"""Combine many states into one. A roll-up of nothing is an error, never a success."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.model import Experiment
from riseml.names import JobName
from riseml.states import TERMINAL, Reason, State

_ACTIVE = (State.RUNNING, State.STARTING, State.BUILDING, State.PENDING, State.CREATED)


def roll_up_set(experiments: Sequence[Experiment]) -> tuple[State, Reason]:
    """Return the state of a set: that of its most advanced member while one is active; FINISHED when all have ended.

    A failed or killed member does not fail its set (RiseML 1.2.3); a set whose members were all killed is KILLED.

    Raises:
        ValueError: the set has no members.
    """
    if not experiments:
        raise ValueError("a set has at least one experiment")
    states = {experiment.state for experiment in experiments}
    if states <= TERMINAL:
        if states == {State.KILLED}:
            return State.KILLED, Reason.KILLED_BY_USER
        return State.FINISHED, Reason.COMPLETED
    state = next(state for state in _ACTIVE if state in states)
    return state, next(experiment.reason for experiment in experiments if experiment.state is state)


def find_failed_job(experiment: Experiment) -> JobName | None:
    """Return the job whose end made the experiment fail; None for a good end, a kill, or a limit of time."""
    verdict = experiment.verdict
    return None if verdict is None or verdict.state is not State.FAILED else verdict.job
