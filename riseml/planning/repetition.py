"""The trials of a search whose points run several times, each with another seed (`repeat`). Pure.

The records have one row for each run. A search proposes, counts and compares points: their trials are folded from the
runs. Without `stop` a point gets all its seeds one after the other. With it the first run alone is compared, with the
first runs of the others; the further seeds follow once it has run to its end, so that a point that is stopped costs one
run, and only runs with the same seed are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from riseml.base.records import dataclass
from riseml.base.states import Wanted
from riseml.model import Point, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.planning.generations import awaits_generation
from riseml.spec.config.types import SEED

_CUT_OFF = "its search ended before all its seeds had run"


@dataclass(frozen=True, slots=True)
class NextRun:
    """What a search runs next."""

    point_number: int  # of its point among the points of the search, from 1
    point: Point | None  # None: a new point, which is still to be chosen
    seed: str = ""  # empty: the search does not repeat its points


def strip_seed(point: Point) -> Point:
    """Return a point without its seed."""
    return tuple(pair for pair in point if pair[0] != SEED)


def add_seed(point: Point, seed: str) -> Point:
    """Return a point with a seed; without one, the point itself."""
    return (*point, (SEED, seed)) if seed else point


def find_first_seed(plan: SearchPlan) -> str:
    """Return the seed of the first run of each point; empty where the search does not repeat its points."""
    return plan.seeds[0] if plan.seeds else ""


def fold_record(record: SearchRecord) -> SearchRecord:
    """Return the record with one trial for each point; the record itself where each point runs once, or
    where it is folded."""
    if not record.plan.seeds or any(trial.runs for trial in record.trials):
        return record
    is_over = record.end is not None or record.wanted is Wanted.KILL
    folded = [_fold_runs(record.plan, runs, is_over=is_over) for runs in _group_runs(record.trials)]
    order = sorted(trial.told for trial in folded if trial.told is not None)
    places = {position: place for place, position in enumerate(order, 1)}
    trials = (
        replace(
            trial,
            number=number,
            asked_after=sum(position <= trial.asked_after for position in order),
            told=None if trial.told is None else places[trial.told],
        )
        for number, trial in enumerate(folded, 1)
    )
    return replace(record, trials=tuple(trials))


def find_next_run(record: SearchRecord) -> NextRun | None:
    """Return what a search runs next, as far as its records say; None when nothing may start now: all points are made,
    and those that are not complete wait for their first runs, or for nothing; or a generation waits for the one before.
    """
    plan = record.plan
    groups = _group_runs(record.trials) if plan.seeds else [[trial] for trial in record.trials]
    for number, runs in enumerate(groups, 1):
        if plan.seeds and _may_repeat(plan, runs):
            return NextRun(number, strip_seed(runs[0].point), plan.seeds[len(runs)])
    if len(groups) >= record.most_trials or awaits_generation(record):
        return None
    return NextRun(len(groups) + 1, None, find_first_seed(plan))


def is_complete(record: SearchRecord) -> bool:
    """Return True when all points are made, and no run of one may follow."""
    if len(fold_record(record).trials) < record.most_trials:
        return False
    groups = _group_runs(record.trials) if record.plan.seeds else []
    return not any(_is_open(record.plan, runs) for runs in groups)


def _group_runs(runs: Sequence[Trial]) -> list[list[Trial]]:
    """Return the runs of each point, in the order in which the points were made."""
    groups: dict[Point, list[Trial]] = {}
    for run in runs:
        groups.setdefault(strip_seed(run.point), []).append(run)
    return list(groups.values())


def _is_open(plan: SearchPlan, runs: Sequence[Trial]) -> bool:
    """Return True while a point may get further runs: one that failed or was stopped gets none."""
    return len(runs) < len(plan.seeds) and all(run.outcome in (None, TrialOutcome.COMPLETE) for run in runs)


def _may_repeat(plan: SearchPlan, runs: Sequence[Trial]) -> bool:
    """Return True when the next run of a point may start now."""
    is_judged = plan.search.stop is None or runs[0].outcome is TrialOutcome.COMPLETE
    return _is_open(plan, runs) and is_judged


def _fold_runs(plan: SearchPlan, runs: Sequence[Trial], *, is_over: bool) -> Trial:
    """Return the trial of a point, with the numbers of its runs and the position of its last result among theirs."""
    first = runs[0]
    trial = replace(
        first,
        point=strip_seed(first.point),
        runs=tuple(run.number for run in runs),
        placed=all(run.placed or run.closed for run in runs),
        closed=all(run.closed for run in runs),
        finished=all(run.finished for run in runs),
        outcome=None,
        told=None,
        value=None,
        values=(),
        excess=0.0,
        message="",
    )
    is_open = _is_open(plan, runs)
    if any(run.outcome is None for run in runs) or (is_open and not is_over):
        return trial
    position = max(run.told or 0 for run in runs)
    failed = next((run for run in runs if run.outcome is TrialOutcome.FAILED), None)
    if failed is not None or is_open:
        message = _CUT_OFF if failed is None else failed.message
        return replace(trial, outcome=TrialOutcome.FAILED, told=position, message=message)
    values = [run.value for run in runs if run.value is not None]
    value = fmean(values) if len(values) == len(runs) else None
    scores = tuple(map(fmean, zip(*(run.values for run in runs), strict=True)))
    excess = fmean(run.excess for run in runs)  # more than 0 where one run fails a constraint
    return replace(trial, outcome=first.outcome, told=position, value=value, values=scores, excess=excess)
