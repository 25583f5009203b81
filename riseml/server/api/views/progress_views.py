"""How far experiments are, as a part of their views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from riseml import wire
from riseml.analysis.progress import Progress
from riseml.base.names import BUILD, JobName
from riseml.base.states import State
from riseml.model import Experiment, Job, SearchRecord
from riseml.server.reconcile.progress_tracker import ProgressTracker
from riseml.store.experiments import ExperimentDetail


def show_progress(job: JobName, progress: Progress) -> wire.ProgressView:
    """Return how far a job is."""
    return {
        "job": job,
        "done": progress.amount,
        "of": progress.of,
        "unit": progress.unit,
        "fraction": round(progress.fraction, 4),
        "per_second": None if progress.per_second is None else float(f"{progress.per_second:.4g}"),
        "remaining": None if progress.remaining is None else round(progress.remaining, 1),
        "spread": None if progress.spread is None else round(progress.spread, 1),
        "rounds": progress.rounds,
    }


def find_job_rates(experiment: Experiment, job: Job, tracker: ProgressTracker) -> list[wire.RateView]:
    """Return how fast a job that runs is; empty: not known."""
    if job.state is not State.RUNNING:
        return []
    rates = tracker.find_rates(experiment.key_of(job))
    return [{"unit": rate.unit, "per_second": float(f"{rate.per_second:.4g}")} for rate in rates]


def find_job_progress(experiment: Experiment, job: Job, tracker: ProgressTracker) -> wire.ProgressView | None:
    """Return how far a job that runs is; None: not known."""
    if job.state is not State.RUNNING:
        return None
    progress = tracker.find_job(experiment.key_of(job))
    return None if progress is None else show_progress(job.name, progress)


def add_progress(
    view: wire.ExperimentView, details: Sequence[ExperimentDetail], tracker: ProgressTracker
) -> wire.ExperimentView:
    """Add to the view of an experiment, or of a set, how far its jobs are, and return it.

    Args:
        view: it is changed.
        details: the experiment, or the members of the set in the order of the view.
        tracker: knows how far jobs are.
    """
    singles = view["experiments"] or [view]
    for single, detail in zip(singles, details, strict=True):
        experiment = detail.experiment
        if experiment.state is not State.RUNNING:
            continue
        progress = {
            job.name: job_progress
            for job in experiment.jobs
            if (job_progress := find_job_progress(experiment, job, tracker)) is not None
        }
        rates = {job.name: find_job_rates(experiment, job, tracker) for job in experiment.jobs}
        for job in single["jobs"]:
            job["rates"] = rates.get(JobName(job["name"]), [])
            if job["name"] in progress:
                job["progress"] = progress[JobName(job["name"])]
        if progress:
            single["progress"] = min(progress.values(), key=lambda entry: (entry["fraction"], entry["job"]))
    return view


def add_trial_progress(view: wire.ExperimentView, search: SearchRecord | None) -> wire.ExperimentView:
    """Add to the view of a set, with the metrics of its members, how far trials are that report steps of a known whole,
    where their output does not tell it, and return it.

    Args:
        view: it is changed.
        search: of the set.
    """
    rule = None if search is None else search.plan.search.stop
    if rule is None or rule.most is None:
        return view
    for single in view["experiments"]:
        steps = [metric["last_step"] for metric in single["metrics"] if metric["last_step"] is not None]
        is_told = single["state"] != State.RUNNING.value or single.get("progress") is not None
        if is_told or not steps or not 0 <= max(steps) <= rule.most:
            continue
        step = max(steps)
        single["progress"] = {
            "job": next((job["name"] for job in single["jobs"] if job["name"] != BUILD), ""),
            "done": step,
            "of": rule.most,
            "unit": "step",
            "fraction": round(step / rule.most, 4),
            "per_second": None,
            "remaining": None,
            "spread": None,
            "rounds": 0,
        }
    return view


def add_all_progress(
    views: Iterable[wire.ExperimentView], details: Iterable[ExperimentDetail], tracker: ProgressTracker
) -> list[wire.ExperimentView]:
    """Add to the views that `show_all` makes of experiments and sets how far they are, and return them."""
    groups: dict[tuple[str, int], list[ExperimentDetail]] = {}
    for detail in details:
        groups.setdefault((detail.experiment.owner.user, detail.experiment.number), []).append(detail)
    return [add_progress(view, group, tracker) for view, group in zip(views, groups.values(), strict=True)]
