"""What an agent may start: figures of a plan, of an experiment that has run, and of a refusal."""

from __future__ import annotations

from typing import Any, cast

import pytest

from riseml import wire
from riseml.agents.budget import Need, SessionLimits, find_excess, measure_need, measure_use, show_budget
from tests.unit.cli.fake_server import make_experiment
from tests.unit.cli.plans import PLAN

SEARCH = {"trials": 10, "repeat": 3}


@pytest.mark.parametrize(
    ("changes", "max_hours", "need"),
    [
        ({}, 2.0, Need(1, 2, 4.0)),
        ({}, None, Need(1, 2, None)),
        ({"experiments": PLAN["experiments"] * 3}, 0.5, Need(3, 2, 3.0)),
        ({"search": SEARCH}, 0.5, Need(30, 2, 30.0)),
        ({"experiments": [{**PLAN["experiments"][0], "jobs": []}]}, None, Need(1, 0, 0.0)),
    ],
    ids=["one", "without a longest run", "grid", "search", "without GPUs"],
)
def test_a_plan_says_what_it_may_use_at_most(changes: dict[str, Any], max_hours: float | None, need: Need) -> None:
    assert measure_need(cast("wire.PlanView", {**PLAN, **changes}), max_hours) == need


def test_an_experiment_that_has_ended_counts_with_what_it_had() -> None:
    times: dict[str, Any] = {"started_at": "2026-08-31T07:00:00Z", "ended_at": "2026-08-31T09:00:00Z", "waited": 1800.0}
    ended = make_experiment(**times)
    assert measure_use(ended, 2) == 3.0
    assert measure_use(make_experiment(), 2) is None
    members = [ended, make_experiment(started_at=None, ended_at="2026-08-31T09:00:00Z")]
    assert measure_use(make_experiment(**times, experiments=members), 2) == 3.0


@pytest.mark.parametrize(
    ("need", "limits", "used", "said"),
    [
        (Need(2, 0, 0.0), SessionLimits(3), (1, 0), None),
        (
            Need(3, 0, 0.0),
            SessionLimits(3),
            (1, 0),
            "it would start 3 experiments, and the session has used 1 of 3",
        ),
        (Need(1, 0, 0.0), SessionLimits(0), (0, 0), "it would start 1 experiment, and the session has used 0 of 0"),
        (Need(1, 4, None), SessionLimits(9), (0, 0), None),
        (
            Need(1, 4, None),
            SessionLimits(9, 8.0),
            (0, 0),
            "GPUs without a longest run, and the session has 8 GPU-h",
        ),
        (Need(1, 0, 0.0), SessionLimits(9, 0.0), (1, 0), None),
        (Need(1, 4, 8.0), SessionLimits(9, 8.0), (0, 0), None),
        (Need(1, 4, 6.0), SessionLimits(9, 8.0), (1, 2.5), "it may use 6 GPU-hours, and the session has used 2.5 of 8"),
    ],
)
def test_a_submission_beyond_the_budget_is_refused_with_the_figures(
    need: Need, limits: SessionLimits, used: tuple[int, float], said: str | None
) -> None:
    excess = find_excess(need, show_budget(limits, used[0], [used[1]]))
    assert (excess is None) == (said is None)
    if excess is not None and said is not None:
        assert said in excess[0] and excess[1]
