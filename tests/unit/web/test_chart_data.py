"""Curves of charts: smoothing, what is near the cursor, and the best value so far."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.javascript import run_page

LINE = """
const { findNear, makeLine, smooth, dropOutliers, writeCsv } = await import("./chart_data.js");
const plain = { x: "step", smoothing: 0 };
const line = (steps, values = steps, settings = plain, across = null) => {
  const at = (place) => `2026-11-28T10:00:${String(place).padStart(2, "0")}Z`;
  const buckets = steps.map((step, place) => {
    const [value, time] = [values[place], at(place)];
    return { mean: value, min: value, max: value, last_step: step, first_at: time, last_at: time };
  });
  return makeLine({ name: "4", buckets }, 0, settings, across);
};
"""


def smooth(values: Sequence[float | None], weight: float) -> Any:
    return run_page(f"{LINE} return smooth({str(values).replace('None', 'null')}, {weight})")


@settings(max_examples=5, deadline=None)
@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30), st.sampled_from([0.3, 0.6, 0.99]))
def test_smoothing_is_that_of_tensorboard(values: list[float], weight: float) -> None:
    """A value is the mean of all up to it, of which each weighs `weight` times the one after it."""
    expected = []
    for end in range(1, len(values) + 1):
        weights = [weight ** (end - 1 - at) for at in range(end)]
        expected.append(sum(w * value for w, value in zip(weights, values, strict=False)) / sum(weights))
    assert smooth(values, weight) == pytest.approx(values if len(set(values)) == 1 else expected, rel=1e-6, abs=1e-6)


def test_smoothing_leaves_gaps_and_constant_curves_as_they_are() -> None:
    assert smooth([0.295] * 50, 0.95) == [0.295] * 50
    assert smooth([1, None, 3], 0.5) == [1, None, pytest.approx((0.5 * 1 + 3) / 1.5)]


def test_the_cursor_takes_no_value_that_is_not_near() -> None:
    script = """
    const many = line([0, 10, 20, 30, 100, 110], [1, 2, null, 4, 5, 6]);
    const single = line([100]);
    return [
      [0, 4, 6, 20, 34, 36, 60, 95, 115, 116, -6].map((x) => findNear(many, x, 1)),
      [3600, 101, 99, 110].map((x) => findNear(single, x, 1)),
      findNear(line([]), 5, 1),
      findNear(many, 60, 40),
    ];
    """
    assert run_page(LINE + script) == [[0, 0, 1, -1, 3, -1, -1, 4, 5, -1, -1], [-1, 0, 0, -1], -1, 3]


def test_x_is_a_step_a_time_or_another_metric_of_the_same_steps() -> None:
    script = """
    const epochs = { name: "4", buckets: [{ mean: 0.5, last_step: 1 }, { mean: 1.5, last_step: 3 }] };
    return [
      line([3, 1, 2]).x,
      line([3, 1, 2], [5, 6, 7], { x: "time", smoothing: 0 }).x,
      line([1, 2, 3], [5, 6, 7], { x: "epoch", smoothing: 0 }, epochs),
      line([1], [5], { x: "epoch", smoothing: 0 }).x,
      line([null, null], [5, 6]).x,
    ];
    """
    steps, times, epochs, nothing, counted = run_page(LINE + script)
    assert (steps, times, counted, nothing) == ([1, 2, 3], [0, 1, 2], [0, 1], [])
    assert (epochs["x"], epochs["y"]) == ([0.5, 1.5], [5, 7]), "there is no epoch at step 2, and none is invented"


def test_values_that_are_not_finite_are_gaps_with_a_mark() -> None:
    script = """
    const { splitRuns, listLost } = await import("./chart_svg.js");
    const found = line([1, 2, 3, 4], [5, null, 7, 8]);
    return [splitRuns(found), listLost(found)];
    """
    assert run_page(LINE + script) == [[{"from": 0, "to": 1}, {"from": 2, "to": 4}], [1]]


def test_outliers_are_the_outermost_twentieth_at_both_ends() -> None:
    script = "return [dropOutliers([...Array(101).keys()].reverse()), dropOutliers([]), dropOutliers([7])]"
    assert run_page(LINE + script) == [[5, 95], [], [7, 7]]


def test_the_csv_of_a_chart_has_all_points_and_no_cell_can_leave_its_place() -> None:
    script = r"""
    const found = { ...line([1, 2], [0.5, null]), name: 'a"b,c\n=1' };
    return writeCsv([found], "step", "loss");
    """
    rows = list(csv.reader(io.StringIO(run_page(LINE + script), newline="")))
    assert rows[0][:3] == ["curve", "x (step)", "step"]
    assert [row[0] for row in rows[1:]] == ['a"b,c\n=1'] * 2
    assert [(row[1], row[4], row[9]) for row in rows[1:]] == [("1", "0.5", "0"), ("2", "", "1")]


def test_trials_that_end_in_the_same_second_are_in_the_order_of_their_numbers() -> None:
    """The results come with the best one first."""
    script = """
    const { listBest } = await import("./set.js");
    const trials = [[12, 0.9], [2, 0.5], [1, 0.1]];
    const make = ([at, value]) => ({ id: `1.${at}`, ended_at: "2026-11-28T10:00:00Z", value, scores: {} });
    const experiments = trials.map(make);
    return listBest(experiments, "m", "maximize").buckets.map(({ mean, last_step }) => [last_step, mean]);
    """
    assert run_page(script) == [[1, 0.1], [2, 0.1], [2, 0.5], [3, 0.5], [3, 0.9]]
