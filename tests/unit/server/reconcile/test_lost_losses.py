"""Which experiments lose their loss while they run, and are to end then."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from functools import partial

import pytest

from riseml.base.states import Reason, State
from riseml.model import Verdict, World
from riseml.server.clock import now
from riseml.server.reconcile.lost_losses import find_not_finite
from riseml.spec.config.types import NanRule, OnSection
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary
from tests.unit.control.simulation import change_policy, make_experiment, make_plan


def summarize(name: str, *values: float, attempts: tuple[int, ...] = ()) -> MetricSummary:
    count = MetricCount(name)
    for step, value in enumerate(values):
        count.add(value, step, "2026-01-01T00:00:00Z", attempts[step] if attempts else 1)
    return count.summarize()


def peek_one(summary: MetricSummary, wanted: Collection[int]) -> dict[int, list[MetricSummary]]:
    return {identity: [summary] for identity in wanted}


LOST = summarize("val_loss", 1.0, math.nan, math.nan)


@pytest.mark.parametrize(
    ("on", "summaries", "sentence"),
    [
        (OnSection(NanRule.STOP), [LOST], "val_loss is nan at step 2"),
        (OnSection(NanRule.FAIL), [summarize("loss", -math.inf, -math.inf)], "loss is -inf at step 1"),
        (OnSection(NanRule.STOP), [summarize("accuracy", math.nan, math.nan), LOST], "val_loss is nan at step 2"),
        (
            OnSection(NanRule.STOP, ("accuracy",)),
            [summarize("accuracy", math.nan, math.nan)],
            "accuracy is nan at step 1",
        ),
        (OnSection(NanRule.STOP, ("accuracy",)), [LOST], None),
        (OnSection(NanRule.REMARK), [LOST], None),
        (OnSection(NanRule.STOP), [summarize("loss", math.nan, 1.0, math.nan)], None),
        (OnSection(NanRule.STOP), [summarize("accuracy", math.nan, math.nan)], None),
    ],
)
def test_a_metric_that_counts_and_is_twice_not_finite_is_named(
    on: OnSection, summaries: list[MetricSummary], sentence: str | None
) -> None:
    experiment = replace(make_experiment(1, change_policy(make_plan("master", "worker.1"), on=on)), state=State.RUNNING)

    def peek(wanted: Collection[int]) -> dict[int, list[MetricSummary]]:
        return dict.fromkeys(wanted, summaries)

    assert find_not_finite(World((experiment,)), peek).get(1) == sentence
    over = replace(experiment, verdict=Verdict(State.FINISHED, Reason.COMPLETED, now()))
    waiting = replace(experiment, state=State.PENDING)
    assert find_not_finite(World((over, replace(waiting, id=2))), peek) == {}, "neither runs, or has no verdict yet"


def test_values_of_an_earlier_attempt_end_no_later_one() -> None:
    experiment = make_experiment(1, change_policy(make_plan("train"), on=OnSection(NanRule.STOP)))
    again = replace(experiment, state=State.RUNNING, jobs=tuple(replace(job, attempt=2) for job in experiment.jobs))
    begun = summarize("loss", math.nan, math.nan, math.nan, attempts=(1, 1, 2))
    lost = summarize("loss", math.nan, math.nan, math.nan, attempts=(1, 2, 2))
    for summary, sentence in ((LOST, None), (begun, None), (lost, "loss is nan at step 2")):
        assert find_not_finite(World((again,)), partial(peek_one, summary)).get(1) == sentence
