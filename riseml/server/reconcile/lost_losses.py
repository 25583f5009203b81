"""The experiments whose loss is not a finite number any more, and whose riseml.yml (`on: nan`) wants their end then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from riseml.analysis.remarks import check_finite, is_loss
from riseml.base.states import State
from riseml.model import Experiment, World
from riseml.spec.config.types import NanRule
from riseml.store.metrics.metric_summary import MetricSummary

PeekNotFinite = Callable[[Collection[int]], Mapping[int, Sequence[MetricSummary]]]
"""Returns the metrics whose last value is not finite, by the id of the experiment, without waiting for anything."""


def find_not_finite(world: World, peek: PeekNotFinite) -> dict[int, str]:
    """Return the experiments that run and must end, with a sentence for each that names the metric.

    What it returns follows from what the logs have: a server that starts counts them again.
    """
    watched = {experiment.id: experiment for experiment in world.experiments if _is_watched(experiment)}
    sentences: dict[int, str] = {}
    for identity, summaries in (peek(watched.keys()) if watched else {}).items():
        problems = [_check(watched[identity], summary) for summary in summaries]
        sentence = next(filter(None, problems), "")
        if sentence:
            sentences[identity] = sentence
    return sentences


def _is_watched(experiment: Experiment) -> bool:
    return (
        experiment.plan.policy.on.nan is not NanRule.REMARK
        and experiment.state is State.RUNNING
        and experiment.verdict is None
    )


def _check(experiment: Experiment, summary: MetricSummary) -> str:
    """Return what is wrong with a metric; empty: nothing, or it does not count, or an earlier attempt reported it."""
    names = experiment.plan.policy.on.metrics
    counts = summary.name in names if names else is_loss(summary.name)
    if not counts or summary.attempt < min(job.attempt for job in experiment.gang):
        return ""
    return check_finite(summary.name, summary.last, summary.last_not_finite, summary.last_step)
