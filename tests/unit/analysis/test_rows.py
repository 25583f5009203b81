"""Results as rows: their columns, and the names that find them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from riseml.analysis.ranking import Objective, choose_objective, parse_sort, sort_rows
from riseml.analysis.rows import Columns, find_varying
from riseml.base.errors import UsageError
from riseml.spec.config.types import Goal
from tests.unit.analysis.result_rows import COLUMNS, ROWS, Numbers, choose, make_row, names


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("acuracy", "there is no column 'acuracy'", "did you mean 'accuracy'?"),
        ("accuracy.best", "nothing says whether a larger or a smaller accuracy is better", "accuracy.max"),
        ("accuracy.mode", "there is no column 'accuracy.mode'", ""),
        ("zzz", "there is no column 'zzz'", "there are layers, lr, opt, accuracy"),
    ],
)
def test_an_unknown_column_is_refused(name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        COLUMNS.find_reader(name)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_metric_may_have_dots_and_a_parameter_comes_before_it() -> None:
    row = make_row(1, metrics={"val/loss.mean": Numbers((2.0, 1.0)), "lr": Numbers((5.0,))}, value=4.0)
    columns = Columns(frozenset({"lr"}), frozenset({"val/loss.mean", "lr"}), {"lr": Goal.MINIMIZE})
    assert columns.find_reader("val/loss.mean")(row) == 1.0
    assert columns.find_reader("val/loss.mean.max")(row) == 2.0
    assert (columns.find_reader("lr")(row), columns.find_comparable("lr")(row)) == ("1e-1", Decimal("0.1"))
    assert columns.find_reader("lr.best")(row) == 5.0
    assert columns.find_reader("metrics.lr")(row) == 4.0, "the value that ranks"


def test_a_column_of_riseml_keeps_its_name_where_a_parameter_or_metric_has_it() -> None:
    rows = [
        make_row(
            1, parameters={"time": "9", "rank": "16", "state": "x"}, metrics={"workers": Numbers((7.0,))}, value=7.0
        ),
        make_row(
            2, parameters={"time": "8", "rank": "8", "state": "y"}, metrics={"workers": Numbers((5.0,))}, value=5.0
        ),
    ]
    columns = Columns(frozenset({"time", "rank", "state"}), frozenset({"workers"}), {"workers": Goal.MINIMIZE})
    assert names(choose(rows, "state=FINISHED and time<2m and workers=1", columns)) == ["1"]
    own = "parameters.state=y and parameters.time=8 and metrics.workers=5"
    assert names(choose(rows, own, columns)) == ["2"]
    for sort in ("parameters.time", "parameters.rank", "-time", "metrics.workers"):
        assert names(sort_rows(rows, parse_sort(sort), columns)) == ["2", "1"], sort
    assert choose_objective(parse_sort("workers"), columns.metrics) is None
    assert choose_objective(parse_sort("metrics.workers"), columns.metrics) == Objective("workers", Goal.MINIMIZE)
    with pytest.raises(UsageError) as refused:
        columns.find_reader("rank")
    assert refused.value.hint == "the parameter of this name is parameters.rank"


def test_parameters_that_are_equal_in_all_rows_are_listed_separately() -> None:
    assert find_varying(ROWS[:3]) == (["lr"], {"opt": "adam w"})
    assert find_varying(ROWS) == (["lr", "opt", "layers"], {})
    assert find_varying([]) == ([], {})
