"""What an experiment waits for beside a place: the ends of other experiments, which its user has named.

Its environment and its data are made ready meanwhile. It is in no queue until all of them have ended, and once it is in
the queue, it stays there.
"""

from __future__ import annotations

from dataclasses import replace

from riseml.base.names import name_for_reader
from riseml.base.states import TERMINAL, JobDuty, Reason, State
from riseml.control.observation import Observation
from riseml.model import Experiment, Predecessor, Verdict

OUTSIDE = "an experiment outside of its project"
"""Stands for a predecessor that members of the team project may not see."""


def may_await_others(experiment: Experiment) -> bool:
    """Return True when an experiment has predecessors, and was not in the queue yet."""
    return (
        bool(experiment.plan.after)
        and experiment.placed_at is None
        and experiment.started_at is None
        and experiment.verdict is None
        and experiment.state not in TERMINAL
        and (experiment.state is not State.PENDING or experiment.awaits_others)
    )


def hold_back(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment outside of the queue while it waits for others, and in the queue once they have ended."""
    if not may_await_others(experiment) or not _is_ready(experiment):
        return experiment
    awaited = list_awaited(experiment, observation)
    if awaited:
        message = f"waits for {', '.join(name_predecessor(experiment, predecessor) for predecessor in awaited)}"
        if experiment.awaits_others and experiment.message == message:
            return experiment
        return replace(experiment, state=State.PENDING, reason=Reason.AFTER, message=message)
    return replace(experiment, state=State.PENDING, reason=Reason.NO_ROOM, message="")


def list_awaited(experiment: Experiment, observation: Observation) -> list[Predecessor]:
    """Return the predecessors that have not ended, or whose output is read and not complete yet."""
    return [predecessor for predecessor in experiment.plan.after if not _has_ended(predecessor, observation)]


def find_lost_predecessor(experiment: Experiment, observation: Observation) -> Verdict | None:
    """Return the verdict of an experiment that waits for one which did not finish, or whose input is not there."""
    if not may_await_others(experiment):
        return None
    for predecessor in experiment.plan.after:
        observed = observation.predecessors.get(predecessor)
        if observed is not None and not predecessor.accepts_any_end and observed.state in TERMINAL - {State.FINISHED}:
            name = name_predecessor(experiment, predecessor)
            message = f"it has waited for {name}, which {observed.state.value}"
            if observed.message and name != OUTSIDE:
                message += f": {observed.message}"
            return Verdict(State.FAILED, Reason.PREDECESSOR, observation.now, message=message)
    lost = observation.lost_inputs.get(experiment.id)
    if lost is not None and not list_awaited(experiment, observation):
        return Verdict(State.FAILED, Reason.NO_INPUT, observation.now, message=lost)
    return None


def name_predecessor(experiment: Experiment, predecessor: Predecessor) -> str:
    """Return the name of a predecessor for everybody who sees the experiment that waits for it."""
    if experiment.team_project is None:
        return name_for_reader(experiment.owner.user, predecessor.owner, predecessor.number, predecessor.sub)
    if predecessor.team_project == experiment.team_project:
        return f"{predecessor.owner}.{predecessor.name}"
    return OUTSIDE


def _is_ready(experiment: Experiment) -> bool:
    """Return True when the environment and the data are there."""
    return all(job.state is State.FINISHED for job in experiment.jobs if job.part is JobDuty.PREPARES)


def _has_ended(predecessor: Predecessor, observation: Observation) -> bool:
    observed = observation.predecessors.get(predecessor)
    return observed is not None and observed.state in TERMINAL and (observed.closed or not predecessor.has_input)
