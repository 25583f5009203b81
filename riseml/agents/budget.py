"""What an agent may start in one session: experiments, and hours of GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from riseml.base.amounts import count_noun
from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml import wire

_HOUR = 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class Need:
    """What a submission may use at most."""

    experiments: int
    gpus: int  # of the experiment that has the most
    gpu_hours: float | None  # of all experiments; None: they have GPUs, and no longest run


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What the user who has started the session allows."""

    experiments: int
    gpu_hours: float | None = None  # None: no limit


def measure_need(plan: wire.PlanView, max_hours: float | None) -> Need:
    """Return what the experiments of a plan may use.

    Args:
        plan: of the server; of a search it has the first trial.
        max_hours: that an experiment may run; None: no limit.
    """
    gpus = [sum(job["gpus"] for job in experiment["jobs"]) for experiment in plan["experiments"]]
    search = plan.get("search")  # a server of an earlier version has none
    runs = search["trials"] * search["repeat"] if search else len(gpus)
    total = max(gpus, default=0) * runs if search else sum(gpus)
    hours = 0.0 if total == 0 else None if max_hours is None else total * max_hours
    return Need(runs, max(gpus, default=0), hours)


def measure_use(view: wire.ExperimentView, gpus: int) -> float | None:
    """Return the GPU-hours that an experiment, or the members of a set, have had; None: it has not ended.

    Args:
        view: of the experiment or the set.
        gpus: of one experiment.
    """
    if view["ended_at"] is None:
        return None
    return gpus * sum(_measure_run(part) for part in view["experiments"] or [view]) / _HOUR


def _measure_run(view: wire.ExperimentView) -> float:
    """Return the seconds for which an experiment has run."""
    if view["started_at"] is None or view["ended_at"] is None:
        return 0.0
    begun, ended = (datetime.fromisoformat(moment) for moment in (view["started_at"], view["ended_at"]))
    return max(0.0, (ended - begun).total_seconds() - view["waited"])


def show_budget(limits: SessionLimits, experiments: int, gpu_hours: Iterable[float]) -> wire.AgentBudget:
    """Return a budget with what was used of it."""
    return {
        "experiments": limits.experiments,
        "experiments_used": experiments,
        "gpu_hours": limits.gpu_hours,
        "gpu_hours_used": round(sum(gpu_hours), 3),
    }


def find_excess(need: Need, budget: wire.AgentBudget) -> tuple[str, str] | None:
    """Return why a submission is beyond the budget, and what to do; None: it is within."""
    left = budget["experiments"] - budget["experiments_used"]
    if need.experiments > left:
        used = f"{budget['experiments_used']} of {count_noun(budget['experiments'], 'experiment')}"
        return (
            f"it would start {count_noun(need.experiments, 'experiment')}, and the session has used {used}",
            f"start at most {left}, or ask the user to restart `riseml mcp --experiments N`",
        )
    limit = budget["gpu_hours"]
    if limit is None or need.gpus == 0:
        return None
    if need.gpu_hours is None:
        return (
            f"its experiments use GPUs without a longest run, and the session has {limit:g} GPU-hours",
            "set train.max_duration, such as 2h",
        )
    if need.gpu_hours > limit - budget["gpu_hours_used"]:
        return (
            f"it may use {need.gpu_hours:.3g} GPU-hours, and the session has used {budget['gpu_hours_used']:.3g}"
            f" of {limit:g}",
            "lower train.max_duration, the number of experiments or of GPUs; or ask the user to restart"
            " `riseml mcp --gpu-hours H`",
        )
    return None
