"""decide(world, seen) -> Decision: what the server saves and then does next.

Level-triggered: the decision depends on the records and on what one pass saw, never on the events in between. A lost
event only delays a decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, JobDuty, Reason, State, Wanted
from riseml.control.actions import Action
from riseml.control.converge import converge
from riseml.control.images import ImageLocations, find_builder, find_starting_jobs, resolve_image
from riseml.control.networks import OccupiedHosts
from riseml.control.observation import Observation
from riseml.control.placement.connect import repair_networks
from riseml.control.placement.leaders import give_back_place
from riseml.control.placement.place import make_placements
from riseml.control.predecessors import hold_back, may_await_others
from riseml.control.saving import awaits_save
from riseml.control.settle import choose_builder, note_shells, settle_jobs, with_jobs
from riseml.control.times import date_experiment, find_limit_end
from riseml.control.verdict import (
    add_verdict,
    conclude_experiment,
    end_jobs,
    find_grace_end,
    find_kill_time,
    find_left_end,
)
from riseml.model import Experiment, Job, World


@dataclass(frozen=True, slots=True)
class Decision:
    """What one pass decided."""

    world: World  # the records to save, before any action
    actions: tuple[Action, ...]  # new actions only: those that are pending already are left out
    wake_at: datetime | None = None  # when the next pass is due at the latest; None: when something happens


def decide(world: World, observation: Observation) -> Decision:
    """Return the records to save and the actions to take, from the records and what one pass saw.

    Example:
        decision = decide(store.load_world(), observation)
        for old, new in changes_to_save(world, decision.world): ...
    """
    images = ImageLocations(observation)
    settled = World(
        tuple(
            experiment if _only_waits(experiment) else _settle_experiment(experiment, observation, images)
            for experiment in world.experiments
        )
    )
    placed_before = frozenset(experiment.id for experiment in world.experiments if experiment.placed_at is not None)
    placements = make_placements(settled, observation, placed_before)
    moved = repair_networks(placements.world, observation).experiments
    placed = World(
        tuple(experiment if experiment.state is State.PENDING else _roll_up_jobs(experiment) for experiment in moved)
    )
    occupied = OccupiedHosts(observation)
    requested = (*converge(placed, observation, occupied), *placements.copies)
    owners = frozenset(action.owner for action in (*observation.busy, *requested))
    after = World(
        tuple(
            replace(experiment, closed=True)
            if experiment.state in TERMINAL
            and not occupied.include(experiment)
            and experiment.id not in owners
            and not awaits_save(experiment, observation)
            else experiment
            for experiment in placed.experiments
        )
    )
    actions = tuple(action for action in requested if action not in observation.busy)
    return Decision(
        after,
        actions,
        observation.now if _needs_pass_at_once(world, after, observation) else _find_next_deadline(after, observation),
    )


def changes_to_save(before: World, after: World) -> tuple[tuple[Experiment, Experiment], ...]:
    """Return the changed records as (old, new), in the order of saving.

    Records that take a place come last: another record may give back the room for it. If the server crashed between the
    two saves in the other order, the room would be given twice.
    """
    both = zip(before.experiments, after.experiments, strict=True)
    pairs = [(old, new) for old, new in both if old is not new and old != new]
    return tuple(sorted(pairs, key=lambda pair: takes_place(*pair)))


def takes_place(old: Experiment, new: Experiment) -> bool:
    """Return True when this decision gave the experiment its place."""
    return old.placed_at is None and new.placed_at is not None


def _settle_experiment(experiment: Experiment, observation: Observation, images: ImageLocations) -> Experiment:
    if experiment.state in TERMINAL:
        return note_shells(experiment, observation)
    built = resolve_image(choose_builder(_limit_future_times(experiment, observation.now), observation), observation)
    experiment = give_back_place(settle_jobs(built, observation, images), observation)
    ended = conclude_experiment(
        end_jobs(add_verdict(date_experiment(experiment), observation), observation), observation
    )
    return hold_back(ended, observation)


def _only_waits(experiment: Experiment) -> bool:
    """Return True when nothing but a place or a kill can change the experiment."""
    return (
        experiment.state is State.PENDING
        and experiment.reason not in (Reason.DATA_FAILED, Reason.AFTER)
        and experiment.wanted is Wanted.RUN
        and experiment.verdict is None
        and experiment.started_at is None
    )


def _limit_future_times(experiment: Experiment, now: datetime) -> Experiment:
    """Return the experiment without times in the future, so that no grace lasts longer when the clock is set back."""
    verdict = experiment.verdict
    if verdict is not None and verdict.at > now:
        experiment = replace(experiment, verdict=replace(verdict, at=now))
    return with_jobs(experiment, [_limit_future_job_times(job, now) for job in experiment.jobs])


def _limit_future_job_times(job: Job, now: datetime) -> Job:
    if job.state in TERMINAL:
        return job
    if job.ending_at is not None and job.ending_at > now:
        job = replace(job, ending_at=now)
    if job.unseen_since is not None and job.unseen_since > now:
        job = replace(job, unseen_since=now)
    return job


def _roll_up_jobs(experiment: Experiment) -> Experiment:
    """Return the experiment with the state that follows from its jobs, as long as it has no verdict.

    Raises:
        ValueError: it has no jobs; a roll-up of nothing is never a success.
    """
    if not experiment.jobs:
        raise ValueError(f"experiment {experiment.id} has no jobs")
    if experiment.state in TERMINAL or experiment.verdict is not None:
        return experiment
    gang = experiment.gang
    build = experiment.build
    if build is not None and build.state not in TERMINAL:
        begun = build.state is not State.CREATED
        if not begun:
            return experiment
        return _with_state(experiment, State.BUILDING, build.reason, experiment.message)
    starting = {job.reason: job.message for job in gang if job.state is State.STARTING}
    if starting:
        reason = next(filter(starting.__contains__, (Reason.WAITING_FOR_IMAGE, Reason.IN_QUEUE)), Reason.PLACED)
        message = starting[reason] if reason is Reason.IN_QUEUE else experiment.message
        return _with_state(experiment, State.STARTING, reason, message)
    if any(job.state is State.RUNNING for job in gang):
        return _with_state(experiment, State.RUNNING, Reason.RUNNING, "")
    return experiment


def _with_state(experiment: Experiment, state: State, reason: Reason, message: str) -> Experiment:
    if (experiment.state, experiment.reason, experiment.message) == (state, reason, message):
        return experiment
    return replace(experiment, state=state, reason=reason, message=message)


def _needs_pass_at_once(before: World, after: World, observation: Observation) -> bool:
    """Return True when the next pass will know more than this one: an experiment gave its place up and may get another
    one, or got a place or a resolved image and its host was not yet asked for the environment; or one that another
    waits for has ended.
    """
    awaits = any(map(may_await_others, after.experiments))
    for old, new in zip(before.experiments, after.experiments, strict=True):
        if old is new:
            continue
        if old.placed_at is not None and new.placed_at is None:
            return True
        if awaits and (new.closed or (new.state in TERMINAL and old.state not in TERMINAL)):
            return True
        if takes_place(old, new) and any(
            new.image_of(job.name).reference not in observation.hosts[job.host].images
            for job in find_starting_jobs(new, observation)
            if job.host is not None
        ):
            return True
        if new.resolved != old.resolved and _lacks_answer(new, observation):
            return True
    return False


def _lacks_answer(experiment: Experiment, observation: Observation) -> bool:
    """Return True when the host that builds was not yet asked for an environment."""
    host = find_builder(experiment, observation)
    return host is not None and any(image.reference not in host.images for image in experiment.images)


def _find_next_deadline(world: World, observation: Observation) -> datetime | None:
    """Return the next moment at which time alone changes a decision; None when there is none."""
    active = [
        experiment
        for experiment in world.experiments
        if not _only_waits(experiment) and experiment.state not in TERMINAL
    ]
    times = [time for experiment in active for time in _find_deadlines(experiment, observation)]
    times += [
        host.silent_since + timedelta(seconds=observation.lost_after)
        for host in observation.hosts.values()
        if host.silent_since is not None
    ]
    return min((time for time in times if time > observation.now), default=None)


def _find_deadlines(experiment: Experiment, observation: Observation) -> Iterator[datetime]:
    verdict = experiment.verdict
    limit_end = find_limit_end(experiment)
    if limit_end is not None:
        yield limit_end
    left = find_left_end(experiment, observation)
    if left is not None:
        yield left
    for job in experiment.jobs:
        if job.unseen_since is not None and job.state not in TERMINAL:
            yield job.unseen_since + timedelta(seconds=observation.lost_after)
        if job.ending_at is not None and job.state not in TERMINAL:
            yield find_kill_time(experiment, job, job.ending_at)
        elif verdict is not None and job.part is JobDuty.HELPS and job.state not in TERMINAL:
            yield find_grace_end(experiment, job, verdict)
