"""Metrics as JSON."""

from __future__ import annotations

import json
import math

import pytest

from riseml.server.api.views.metric_views import show_history, show_number
from riseml.store.metrics.metric_history import MetricHistory


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, 0.5), (-1e300, -1e300), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")]
)
def test_what_json_has_no_number_for_is_a_text(value: float, shown: float | str) -> None:
    assert show_number(value) == shown
    json.dumps(show_number(value), allow_nan=False)


def test_a_history_is_a_row_for_each_bucket() -> None:
    history = MetricHistory()
    for step in range(3):
        history.add(float(step), step, f"2026-08-31T07:23:4{step}Z")
    view = show_history("4", "loss", history.read_buckets())
    assert (view["id"], view["metric"]) == ("4", "loss")
    assert [(row["first_step"], row["mean"], row["count"]) for row in view["buckets"]] == [
        (0, 0.0, 1),
        (1, 1.0, 1),
        (2, 2.0, 1),
    ]
