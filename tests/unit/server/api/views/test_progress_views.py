"""How far trials are that report steps of a known whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from riseml.base.states import Wanted
from riseml.model import SearchPlan, SearchRecord
from riseml.server.api.views.progress_views import add_trial_progress
from riseml.spec.config.types import StopMethod, StopRule
from tests.support.searches import LAYERS, make_search

RULE = StopRule(StopMethod.HYPERBAND, most=81)


def make_record(rule: StopRule | None) -> SearchRecord:
    plan = SearchPlan(replace(make_search(trials=4), stop=rule), (LAYERS,))
    return SearchRecord(1, "paul", 144, plan, 1, Wanted.RUN, 4, ())


@pytest.mark.parametrize(
    ("rule", "member", "amounts"),
    [
        (RULE, {}, (27, 81, 0.3333)),
        (RULE, {"state": "FINISHED"}, None),
        (RULE, {"metrics": [{"last_step": None}]}, None),
        (RULE, {"metrics": [{"last_step": 82}]}, None),
        (RULE, {"progress": {"done": 1, "of": 2, "fraction": 0.5}}, (1, 2, 0.5)),
        (StopRule(StopMethod.ASHA), {}, None),
        (None, {}, None),
    ],
)
def test_a_trial_is_as_far_as_its_last_step(
    rule: StopRule | None, member: dict[str, Any], amounts: tuple[float, float, float] | None
) -> None:
    metrics = [{"last_step": 27}, {"last_step": None}, {"last_step": 9}]
    jobs = [{"name": "build"}, {"name": "train"}]
    single: dict[str, Any] = {"state": "RUNNING", "metrics": metrics, "jobs": jobs, "progress": None} | member
    add_trial_progress({"experiments": [single]}, make_record(rule))  # type: ignore[typeddict-item]  # what it reads
    progress = single["progress"]
    assert (None if progress is None else (progress["done"], progress["of"], progress["fraction"])) == amounts
