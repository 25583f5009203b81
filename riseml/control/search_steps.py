"""What a search does next: a pure function of its records. `server.reconcile.search_loop` does it.

`decide_search` returns one step for each search, or all results that the search does not have yet. Each step
changes the records, so that the next decision depends on nothing else, also after a crash.

| records                                                            | step                          |
|--------------------------------------------------------------------|-------------------------------|
| an experiment has ended, and the search lacks its result           | `TellTrial`                   |
| fewer trials run than allowed, none waits for a place, some remain | `AskTrial`                    |
| none runs, and none may follow                                     | `EndSearch`                   |
| otherwise, and while a user has paused it                          | nothing: something has to end |
"""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, Reason, Wanted
from riseml.model import FIRST_TRIALS, Experiment, SearchEnd, SearchRecord, Trial, TrialOutcome
from riseml.planning.repetition import find_next_run, fold_record, is_complete

_FAILURES = {
    SearchEnd.TOO_MANY_FAILED: Reason.TOO_MANY_FAILED,
    SearchEnd.FIRST_FAILED: Reason.TOO_MANY_FAILED,
    SearchEnd.BROKEN: Reason.INTERNAL,
}
"""The ends with which a search has failed, whatever its trials did."""


@dataclass(frozen=True, slots=True)
class AskTrial:
    """Choose the point of a new trial, and store it with its experiment."""

    set_id: int
    number: int  # number of the trial; the store takes each number once


@dataclass(frozen=True, slots=True)
class TellTrial:
    """Store the result of a trial that has ended."""

    set_id: int
    number: int


@dataclass(frozen=True, slots=True)
class EndSearch:
    """Store that no further trial follows."""

    set_id: int
    end: SearchEnd


SearchStep = AskTrial | TellTrial | EndSearch


def decide_search(record: SearchRecord) -> tuple[SearchStep, ...]:
    """Return what to do next for a search; nothing while its trials run."""
    if record.end is not None:
        return ()
    live = record.live
    ended = sorted((trial for trial in live if trial.closed), key=lambda trial: trial.number)
    if ended:
        return tuple(TellTrial(record.id, trial.number) for trial in ended)
    end = find_search_end(record)
    if end is not None:
        return () if live else (EndSearch(record.id, end),)
    if record.paused or len(live) >= record.concurrency or any(_waits(trial) for trial in live):
        return ()
    return () if find_next_run(record) is None else (AskTrial(record.id, len(record.trials) + 1),)


def may_take_step(before: Experiment, after: Experiment) -> bool:
    """Return True when a change of an experiment may let its search take a step: of what `decide_search` sees of a
    trial, something is different."""

    def show(experiment: Experiment) -> tuple[object, ...]:
        is_placed = experiment.placed_at is not None
        return is_placed, experiment.state in TERMINAL, experiment.closed, experiment.reason, experiment.wanted

    return after.set_id is not None and show(before) != show(after)


def find_search_end(record: SearchRecord) -> SearchEnd | None:
    """Return why a search makes no further trials; None while it makes some."""
    if record.wanted is Wanted.KILL:
        return SearchEnd.KILLED
    if record.wanted is Wanted.STOP:
        return SearchEnd.STOPPED
    return find_excess(record) or (SearchEnd.COMPLETED if is_complete(record) else None)


def find_excess(record: SearchRecord) -> SearchEnd | None:
    """Return why a search makes no further trials because of those that failed; None while it has too few of them.

    Without `max_failed`, the first five count as long as no trial has ended well.
    """
    points = fold_record(record)
    failed = points.count(TrialOutcome.FAILED)
    limit = record.plan.search.max_failed
    if limit is not None:
        return SearchEnd.TOO_MANY_FAILED if failed > limit else None
    has_success = points.count(TrialOutcome.COMPLETE) + points.count(TrialOutcome.STOPPED) > 0
    return SearchEnd.FIRST_FAILED if failed >= FIRST_TRIALS and not has_success else None


def find_search_failure(record: SearchRecord | None) -> Reason | None:
    """Return why a search has failed as a whole, although single trials may have finished; None: it has not, it goes on
    still, or there is none.
    """
    if record is None or record.end is None or record.end is SearchEnd.KILLED:
        return None
    has_only_failed = record.count(TrialOutcome.FAILED) == len(record.trials)
    is_without_value = has_only_failed and any(trial.finished for trial in record.trials)
    return _FAILURES.get(record.end) or (Reason.NO_METRIC if is_without_value else None)


def _waits(trial: Trial) -> bool:
    """Return True while a trial waits for a place: a point that is chosen later can use more results."""
    return not trial.placed and not trial.closed
