"""How a training scales with its workers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.rows import Columns, ResultRow
from riseml.analysis.scaling import Scaling, ScalingRow, find_scaling_reader, list_scaling_names, measure_scaling
from riseml.base.errors import UsageError
from tests.unit.analysis.result_rows import Numbers, make_row


def test_scaling_is_measured_by_the_rate_against_the_fewest_workers() -> None:
    rows = [
        workers(4, 110, 350, 0.9),
        workers(1, 100, 90, 0.5),
        workers(1, 120, 110, 0.7),
        workers(2, 9, 9, 1, "FAILED"),
    ]
    columns = Columns(frozenset(), frozenset({"rate", "accuracy"}))
    scaling = measure_scaling(rows, columns)
    assert (scaling.rate, scaling.left_out) == ("rate", 1)
    first, last = scaling.rows
    assert (first.workers, first.runs, first.seconds, first.rate, first.speed_up, first.efficiency) == (
        1, 2, 110.0, 100.0, 1.0, 1.0,
    )  # fmt: skip
    assert (last.workers, last.speed_up, last.efficiency) == (4, 3.5, 0.875)
    assert first.metrics == {"accuracy": pytest.approx(0.6)}


def test_without_a_rate_the_times_are_compared() -> None:
    rows = [workers(3, 50, None, 0.9), workers(1, 100, None, 0.5)]
    scaling = measure_scaling(rows, Columns(frozenset(), frozenset({"accuracy"})))
    assert [(row.rate, row.speed_up, row.efficiency) for row in scaling.rows] == [
        (None, 1.0, 1.0),
        (None, 2.0, pytest.approx(2 / 3)),
    ]
    with pytest.raises(UsageError, match="no metric 'speed' was reported"):
        measure_scaling(rows, Columns(frozenset(), frozenset({"accuracy"})), "speed")
    assert measure_scaling([], Columns(frozenset(), frozenset())).rows == ()
    half = [workers(1, 1, None, 0.5), workers(2, 1, 7, 0.5)]
    missing = measure_scaling(half, Columns(frozenset(), frozenset({"rate"})))
    assert [(row.rate, row.speed_up) for row in missing.rows] == [(None, None), (7.0, None)]


@given(
    st.lists(st.sampled_from(["time", "metrics.time", "runs", "speed-up", "a", "rate"]), unique=True),
    st.sampled_from(["", "time", "rate"]),
)
def test_each_column_has_a_name_that_finds_it(metrics: list[str], rate: str) -> None:
    values = {name: float(at) for at, name in enumerate(metrics) if name != rate}
    scaling = Scaling(rate, (ScalingRow(1, 2, 50.0, 99.0 if rate else None, 1.0, 1.0, values),), 0)
    columns = list_scaling_names(scaling)
    assert len(set(columns)) == len(columns) == 5 + bool(rate) + len(values)
    found = {name: find_scaling_reader(scaling, name)(scaling.rows[0]) for name in columns}
    assert sorted(value for value in found.values() if value is not None) == sorted(
        [1.0, 2.0, 50.0, 1.0, 1.0, *([99.0] if rate else []), *values.values()]
    )


def workers(count: int, seconds: float, rate: float | None, accuracy: float, state: str = "FINISHED") -> ResultRow:
    metrics = {"accuracy": Numbers((accuracy,))} | ({} if rate is None else {"rate": Numbers((1.0, rate))})
    return make_row(count, state=state, seconds=seconds, workers=count, metrics=metrics)
