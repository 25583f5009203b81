"""A search in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator

from riseml import wire
from riseml.names import experiment_name
from riseml.spec.config.types import Goal
from riseml.trials import END_SENTENCES, SearchEnd, SearchRecord, TrialOutcome


def show_search(record: SearchRecord) -> wire.SearchView:
    """Return what a search does, and what it has found."""
    search, best = record.plan.search, record.find_best()
    shown: wire.BestTrial | None = None
    if best is not None and best.value is not None:
        name = experiment_name(record.number, best.number)
        shown = {"id": name, "value": best.value, "parameters": dict(best.point)}
    return {
        "method": search.method.value,
        "metric": search.metric,
        "goal": "maximize" if search.goal is Goal.MAXIMIZE else "minimize",
        "seed": search.seed or 0,
        "trials": record.most_trials,
        "made": len(record.trials),
        "running": len(record.live),
        "complete": record.count(TrialOutcome.COMPLETE),
        "stopped": record.count(TrialOutcome.STOPPED),
        "failed": record.count(TrialOutcome.FAILED),
        "best": shown,
        "end": None if record.end is None else record.end.value,
        "message": describe_search(record),
        "variables": [one.name for one in record.variables if one.value is None],
    }


def describe_best_trial(record: SearchRecord | None) -> str:
    """Return `best 144.3 accuracy 0.981 (lr=0.01)`; empty without a good trial."""
    best = None if record is None else record.find_best()
    if record is None or best is None:
        return ""
    point = ", ".join(f"{name}={value}" for name, value in best.point)
    name = experiment_name(record.number, best.number)
    return f"best {name} {record.plan.search.metric} {best.value:g}{point and f' ({point})'}"


def describe_search(record: SearchRecord) -> str:
    """Return `trial 7 of 40, best 144.3 accuracy 0.981`."""
    return ", ".join(_describe_parts(record))


def _describe_parts(record: SearchRecord) -> Iterator[str]:
    yield f"trial {len(record.trials)} of {record.most_trials}"
    stopped, failed = record.count(TrialOutcome.STOPPED), record.count(TrialOutcome.FAILED)
    if stopped:
        yield f"{stopped} stopped early"
    if failed:
        yield f"{failed} failed"
    best = record.find_best()
    if best is not None:
        yield f"best {experiment_name(record.number, best.number)} {record.plan.search.metric} {best.value:g}"
    if record.end not in (None, SearchEnd.COMPLETED):
        yield END_SENTENCES[record.end]
