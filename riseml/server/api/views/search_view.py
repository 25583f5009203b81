"""A search in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from riseml import wire
from riseml.base.names import name_for_reader
from riseml.base.states import Reason
from riseml.control.rollup import SetMember, describe_set_end
from riseml.control.search_steps import find_search_end, find_search_failure
from riseml.model import END_SENTENCES, SearchEnd, SearchRecord, Trial, TrialOutcome
from riseml.planning.generations import awaits_generation, find_generation
from riseml.planning.repetition import NextRun, find_next_run, fold_record
from riseml.server.api.views.objective_view import show_goal, show_objectives

_MOST_NAMES = 5  # names of metrics that are listed
_UNEXPECTED = (
    *(SearchEnd.EXHAUSTED, SearchEnd.TOO_MANY_FAILED, SearchEnd.FIRST_FAILED, SearchEnd.STOPPED, SearchEnd.BROKEN),
)
"""Ends of a search that the states of the members do not explain."""


def show_search(record: SearchRecord, names: Collection[str] = (), reader: str | None = None) -> wire.SearchView:
    """Return the settings, progress and best trial of a search.

    Args:
        record: of the search.
        names: the metrics that its trials have reported.
        reader: the user of the request; None: its own.
    """
    search = record.plan.search
    running = len(record.live)
    following = describe_next_step(record, reader)
    record = fold_record(record)
    best = record.find_best()
    best_trial: wire.BestTrial | None = None
    if best is not None and best.value is not None:
        name = _name_run(record, best.first_run, reader)
        runs = len(best.runs) or 1
        best_trial = {"id": name, "value": best.value, "parameters": dict(best.point), "runs": runs}
    return {
        "method": search.method.value,
        "metric": search.metric,
        "goal": show_goal(search.goal),
        "objective": str(search.objective),
        "objectives": show_objectives(search),
        "seed": search.seed or 0,
        "trials": record.most_trials,
        "repeat": len(record.plan.seeds) or 1,
        "made": len(record.trials),
        "running": running,
        "complete": record.count(TrialOutcome.COMPLETE),
        "stopped": record.count(TrialOutcome.STOPPED),
        "failed": record.count(TrialOutcome.FAILED),
        "best": best_trial,
        "front": [_name_run(record, trial.first_run, reader) for trial in record.list_front()],
        "end": None if record.end is None else record.end.value,
        "message": describe_search(record, names, reader),
        "next": following,
        "variables": [variable.name for variable in record.variables if variable.value is None],
    }


def _name_run(record: SearchRecord, sub: int | None, reader: str | None) -> str:
    """Return the name of a run of a search, or of the whole set, for the user of the request."""
    return name_for_reader(record.user if reader is None else reader, record.user, record.number, sub)


def describe_best_trial(record: SearchRecord | None, reader: str | None = None) -> str:
    """Return `best 144.3 accuracy 0.981 (lr=0.01)`, with several objectives `3 on the front: ...`; empty without a good
    trial.
    """
    record = None if record is None else fold_record(record)
    if record is not None and record.plan.search.metrics:
        return _describe_front(record, reader)
    best = None if record is None else record.find_best()
    if record is None or best is None:
        return ""
    point = ", ".join(f"{name}={value}" for name, value in best.point)
    return f"{_name_best(record, best, reader)}{point and f' ({point})'}"


def _name_best(record: SearchRecord, best: Trial, reader: str | None) -> str:
    """Return `best 144.3 accuracy 0.981`; of several runs `best 144.6 and 4 more seeds, mean accuracy 0.97`."""
    name = _name_run(record, best.first_run, reader)
    if len(best.runs) < 2:
        return f"best {name} {record.plan.search.metric} {best.value:g}"
    more = len(best.runs) - 1
    seeds = "seed" if more == 1 else "seeds"
    return f"best {name} and {more} more {seeds}, mean {record.plan.search.metric} {best.value:g}"


def _describe_front(record: SearchRecord, reader: str | None) -> str:
    """Return `3 on the front: 144.1, 144.4, 144.7`, of several runs `2 on the front: 144.1, 144.6, each with 4 more
    seeds, by their means`; empty without a trial that has ended well.
    """
    front = record.list_front()
    names = [_name_run(record, trial.first_run, reader) for trial in front[:_MOST_NAMES]]
    more = f" and {len(front) - _MOST_NAMES} more" if len(front) > _MOST_NAMES else ""
    seeds = len(record.plan.seeds) - 1
    means = f", each with {seeds} more {'seed' if seeds == 1 else 'seeds'}, by their means" if seeds > 0 else ""
    return f"{len(front)} on the front: {', '.join(names)}{more}{means}" if front else ""


def describe_end(
    members: Sequence[SetMember], record: SearchRecord | None, names: Collection[str] = (), reader: str | None = None
) -> str:
    """Return how the members of a set ended: `6 of 8 finished, 2 failed, best 144.3 accuracy 0.981`; empty while it
    runs.

    Args:
        members: the experiments of the set.
        record: the search that chooses its points.
        names: the metrics that its trials have reported.
        reader: the user of the request; None: its own.
    """
    counted = describe_set_end(members, describe_best_trial(record, reader))
    if not counted or record is None:
        return counted
    why = [END_SENTENCES[record.end]] if record.end in _UNEXPECTED else []
    return "; ".join([counted, *why, *_explain_no_value(record, names)])


def describe_search(record: SearchRecord, names: Collection[str] = (), reader: str | None = None) -> str:
    """Return `trial 7 of 40, best 144.3 accuracy 0.981`."""
    return "; ".join([", ".join(_describe_parts(fold_record(record), reader)), *_explain_no_value(record, names)])


def describe_next_step(record: SearchRecord, reader: str | None = None) -> str:
    """Return the next step of a search, and what the search waits for."""
    if record.end is not None:
        return f"makes no further trial: {END_SENTENCES[record.end]}"
    live = record.live
    following = find_next_run(record)
    makes = _name_next_run(record, following)
    end = find_search_end(record)
    noun = "run" if record.plan.seeds else "trial"
    running = f"{len(live)} of its {noun}s {_choose_verb(record, len(live))}"
    if end is not None:
        why = "all trials are made" if end is SearchEnd.COMPLETED else END_SENTENCES[end]
        return f"makes no further trial: {why}; {running}" if live else f"ends now: {why}"
    if record.paused:
        resume = f"`riseml search {_name_run(record, None, reader)} --resume` lets it go on"
        return f"is paused; {resume}; {running}" if live else f"is paused; {resume}"
    if awaits_generation(record):
        generation = find_generation(record.plan, len(record.trials) + 1) or 1
        return f"begins generation {generation} when generation {generation - 1} has ended: {running}"
    waiting = next((trial for trial in live if not trial.placed and not trial.closed), None)
    if waiting is not None:
        name = _name_run(record, waiting.number, reader)
        return f"makes {makes} when {name} has got a place"
    if len(live) >= record.concurrency:
        allowed = f"concurrency: {record.concurrency}"
        return f"makes {makes} when a {noun} ends: {running} ({allowed})"
    if following is None:
        return f"makes {makes} when the first one of a trial has ended: {running}"
    return f"makes {makes} now" if following.point is not None else f"chooses {makes} now"


def _name_next_run(record: SearchRecord, following: NextRun | None) -> str:
    if following is None:
        return "further runs"
    trial = f"trial {following.point_number} of {record.most_trials}"
    return trial if following.point is None else f"seed {following.seed} of {trial}"


def _choose_verb(record: SearchRecord, count: int) -> str:
    singular, plural = ("goes on", "go on") if record.plan.seeds else ("runs", "run")
    return singular if count == 1 else plural


def _explain_no_value(record: SearchRecord, names: Collection[str]) -> Iterator[str]:
    """Yield `no trial reported acuracy; there is accuracy`, when trials have ended and reported only other metrics."""
    lacking = [metric for metric, _ in record.plan.search.objectives if metric not in names]
    if names and lacking and any(trial.outcome is not None for trial in record.trials):
        some = sorted(names)
        more = f" and {len(some) - _MOST_NAMES} more" if len(some) > _MOST_NAMES else ""
        verb = "is" if len(some) == 1 else "are"
        yield f"no trial reported {' or '.join(lacking)}; there {verb} {', '.join(some[:_MOST_NAMES])}{more}"
    elif not names and find_search_failure(record) is Reason.NO_METRIC:
        yield f"no trial reported {' or '.join(lacking)}"


def _describe_parts(record: SearchRecord, reader: str | None) -> Iterator[str]:
    yield f"trial {len(record.trials)} of {record.most_trials}"
    if record.paused and record.end is None:
        yield "paused"
    stopped = record.count(TrialOutcome.STOPPED)
    failed = record.count(TrialOutcome.FAILED)
    valueless = sum(trial.outcome is TrialOutcome.FAILED and trial.finished for trial in record.trials)
    if stopped:
        yield f"{stopped} stopped early"
    if failed > valueless:
        yield f"{failed - valueless} failed"
    if valueless:
        yield f"{valueless} without a value"
    beyond = sum(trial.excess > 0 and trial.outcome is TrialOutcome.COMPLETE for trial in record.trials)
    if beyond:
        yield f"{beyond} beyond the constraints"
    if front := record.plan.search.metrics and _describe_front(record, reader):
        yield front
    best = record.find_best()
    if best is not None:
        yield _name_best(record, best, reader)
    if record.end not in (None, SearchEnd.COMPLETED):
        yield END_SENTENCES[record.end]
