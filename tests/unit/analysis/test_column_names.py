"""Names of columns: any name of a metric is found by a name that no other has, however a user writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.column_names import quote_name, split_exact, split_names
from riseml.analysis.filters import parse_where
from riseml.analysis.ranking import choose_objective, parse_sort, sort_rows
from riseml.analysis.rows import PARTS, Columns, ResultRow
from riseml.base.metric_names import LONGEST, is_metric_name
from riseml.spec.config.types import Goal
from riseml.store.metrics.metric_summary import MetricCount
from tests.unit.analysis.result_rows import choose

NAMES = st.text(
    st.sampled_from("ab.\"'\\,<>= &()-損é") | st.characters(codec="utf-8"), min_size=1, max_size=LONGEST
).filter(is_metric_name)


def make_row(number: int, **metrics: float) -> ResultRow:
    counts = {}
    for name, value in metrics.items():
        counts[name] = count = MetricCount(name)
        count.add(value, None, "", 1)
    summaries = {name: count.summarize() for name, count in counts.items()}
    return ResultRow(str(number), "FINISHED", "COMPLETED", (number, 0), metrics=summaries)


@given(st.sets(NAMES, min_size=1, max_size=6), st.sets(st.sampled_from(["lr", "time", "a", "b-"]), max_size=3))
def test_each_metric_has_a_column_that_no_other_has(metrics: set[str], parameters: set[str]) -> None:
    columns = Columns(frozenset(parameters), frozenset(metrics))
    titles = [columns.name_metric(metric, part) for metric in metrics for part in ("", *PARTS)]
    assert len({*titles, *map(columns.name_parameter, parameters)}) == len(titles) + len(parameters)
    for metric in metrics:
        for part in ("", *PARTS):
            assert columns.resolve(columns.name_metric(metric, part)) == ("metrics", metric, part)
        written = columns.write_metric(metric)
        assert list(split_names(f"lr, {written} ,time")) == ["lr", written, "time"]
        assert columns.resolve(written) == ("metrics", metric, "")
        (condition,) = parse_where(f"{written}<0.5")
        assert condition.name == written
        assert parse_sort(f"-{written}")[0].name == written


@given(st.text())
def test_a_name_in_quotes_is_read_as_it_was(name: str) -> None:
    assert split_exact(quote_name(name)) == ("", name, "")


def test_names_that_a_part_of_another_has_are_two_columns() -> None:
    columns = Columns(frozenset(), frozenset({"g", "g.max"}))
    row = make_row(1, **{"g": 1.0, "g.max": 7.0})
    found = {name: columns.find_reader(name)(row) for name in ("g", "g.max", '"g".max', '"g.max"', "g.max.max")}
    assert found == {"g": 1.0, "g.max": 7.0, '"g".max': 1.0, '"g.max"': 7.0, "g.max.max": 7.0}
    assert columns.name_metric("g", "max") == '"g".max'


@pytest.mark.parametrize(
    ("where", "sort"),
    [('"val loss" < 1', '-"val loss",id'), ("metrics.'val loss'.min<1", "-val loss"), ("损失<1", "-损失")],
)
def test_conditions_and_orders_take_names_of_any_script(where: str, sort: str) -> None:
    rows = [make_row(number, **{"val loss": number / 2, "损失": number / 2}) for number in range(4)]
    columns = Columns(frozenset(), frozenset({"val loss", "损失"}))
    kept = choose(rows, where, columns)
    assert [row.name for row in sort_rows(kept, parse_sort(sort), columns)] == ["1", "0"]
    objective = choose_objective(parse_sort(sort), frozenset({"val loss", "损失"}))
    assert objective is not None
    assert (objective.metric in where, objective.goal) == (True, Goal.MAXIMIZE)
