"""Results as rows: their columns, the conditions of `--where`, the order, the ranks, and how a training scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.results.filters import filter_rows, parse_where
from riseml.results.ranking import Objective, choose_objective, parse_sort, rank_rows, sort_by_rank, sort_rows
from riseml.results.rows import Columns, ResultRow, find_varying, read_number
from riseml.results.scaling import measure_scaling
from riseml.spec.config.types import Goal


@dataclass(frozen=True)
class Numbers:
    """A metric with these values."""

    values: tuple[float, ...]
    last_step: int | None = 7

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def last(self) -> float:
        return self.values[-1]

    @property
    def minimum(self) -> float | None:
        return min(filter(math.isfinite, self.values), default=None)

    @property
    def maximum(self) -> float | None:
        return max(filter(math.isfinite, self.values), default=None)


def make_row(sub: int, accuracy: tuple[float, ...] = (), state: str = "FINISHED", **changes: object) -> ResultRow:
    metrics = {"accuracy": Numbers(accuracy)} if accuracy else {}
    fields: dict[str, object] = {
        "parameters": {"lr": f"1e-{sub}", "opt": "adam w"},
        "metrics": metrics,
        "seconds": 60.0 * sub,
        "hosts": ("h1",),
    }
    # mypy cannot see that the names of a mapping are fields.
    return ResultRow(f"144.{sub}", state, "COMPLETED", (144, sub), **{**fields, **changes})  # type: ignore[arg-type]  # a test names fields


ROWS = [
    make_row(1, (0.1, 0.9, 0.8)),
    make_row(2, (0.95, math.nan)),
    make_row(3),
    make_row(4, (0.99,), state="FAILED"),
    make_row(5, (math.inf,), state="RUNNING", parameters={"lr": "auto", "layers": "10"}),
    make_row(10, (0.9,), parameters={"lr": "0.1", "layers": "9"}),
]
COLUMNS = Columns(frozenset({"lr", "opt", "layers"}), frozenset({"accuracy", "val/loss.mean"}))
BEST = Objective("accuracy", Goal.MAXIMIZE)


def names(rows: list[ResultRow]) -> list[str]:
    return [row.name.removeprefix("144.") for row in rows]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("lr<0.01", ["3", "4"]),
        ("lr <= 1e-2", ["2", "3", "4"]),
        ("lr=0.1", ["1", "10"]),
        ("lr == auto", ["5"]),
        ("lr != auto", ["1", "2", "3", "4", "10"]),
        ("opt='adam w'", ["1", "2", "3", "4"]),
        ('opt != "adam w"', ["5", "10"]),
        ("layers>9", ["5"]),
        ("accuracy>=0.9", ["4", "5", "10"]),
        ("accuracy.max >= 0.9 and accuracy.max<0.99", ["1", "2", "10"]),
        ("accuracy.min<0.5", ["1"]),
        ("accuracy.count>1, state = FINISHED", ["1", "2"]),
        ("accuracy.step=7 && time<=2m", ["1", "2"]),
        ("metrics.accuracy>0 AND parameters.lr>0.05", ["1", "10"]),
        ("host=h1 and workers=1 and time>9m", ["10"]),
        ("id=144.3", ["3"]),
    ],
)
def test_conditions_choose_rows(condition: str, wanted: list[str]) -> None:
    assert names(filter_rows(ROWS, parse_where(condition), COLUMNS)) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a condition is missing at the end"),
        ("lr", "no condition begins at 'lr'"),
        ("lr<", "no condition begins at 'lr<'"),
        ("lr<0.1 and", "a condition is missing at the end"),
        ("lr<0.1 lr>1", "no condition begins at 'lr>1'"),
        ("lr<0.1 or lr>1", "`or` is not supported: run the command twice"),
        ("lr<0.1 || lr>1", "`or` is not supported"),
        ("(lr<0.1)", "parentheses are not supported"),
        ("lr<fast", "< compares numbers, and 'fast' is not a number"),
        ("opt='adam", 'no condition begins at "opt=\'adam"'),
        ("lr=>1", "no condition begins at"),
        ("x" * 2000, "--where has 2,000 characters"),
        (",".join(["a=1"] * 60), "no condition begins at"),
    ],
)
def test_an_invalid_condition_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_where(text)
    assert message in refused.value.message


@given(st.text(alphabet="lraor<>=! '\"().,&|0123456789e-\n", max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_text_is_conditions_or_refused(text: str) -> None:
    try:
        found = parse_where(text)
    except UsageError:
        return
    assert found
    assert all(one.name and one.sign for one in found)


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
    row = make_row(1, metrics={"val/loss.mean": Numbers((2.0, 1.0)), "lr": Numbers((5.0,))})
    columns = Columns(frozenset({"lr"}), frozenset({"val/loss.mean", "lr"}), {"lr": Goal.MINIMIZE})
    assert columns.find_reader("val/loss.mean")(row) == 1.0
    assert columns.find_reader("val/loss.mean.max")(row) == 2.0
    assert columns.find_reader("lr")(row) == 0.1
    assert columns.find_reader("metrics.lr")(row) == columns.find_reader("lr.best")(row) == 5.0


def test_a_column_of_riseml_keeps_its_name_where_a_parameter_or_metric_has_it() -> None:
    rows = [
        make_row(1, parameters={"time": "9", "rank": "16", "state": "x"}, metrics={"workers": Numbers((7.0,))}),
        make_row(2, parameters={"time": "8", "rank": "8", "state": "y"}, metrics={"workers": Numbers((5.0,))}),
    ]
    columns = Columns(frozenset({"time", "rank", "state"}), frozenset({"workers"}), {"workers": Goal.MINIMIZE})
    assert names(filter_rows(rows, parse_where("state=FINISHED and time<2m and workers=1"), columns)) == ["1"]
    own = "parameters.state=y and parameters.time=8 and metrics.workers=5"
    assert names(filter_rows(rows, parse_where(own), columns)) == ["2"]
    for sort in ("parameters.time", "parameters.rank", "-time", "metrics.workers"):
        assert names(sort_rows(rows, parse_sort(sort), columns)) == ["2", "1"], sort
    assert choose_objective(parse_sort("workers"), columns.metrics) is None
    assert choose_objective(parse_sort("metrics.workers"), columns.metrics) == Objective("workers", Goal.MINIMIZE)
    with pytest.raises(UsageError) as refused:
        columns.find_reader("rank")
    assert refused.value.hint == "the parameter of this name is parameters.rank"


def test_a_value_in_quotes_keeps_the_other_quotes() -> None:
    assert [one.value for one in parse_where("""opt='"adam"' and opt="'a" and opt='' """)] == ['"adam"', "'a", ""]


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        ("", ["1", "2", "3", "4", "5", "10"]),
        ("id", ["1", "2", "3", "4", "5", "10"]),
        ("state,-id", ["4", "10", "3", "2", "1", "5"]),
        ("-lr", ["1", "10", "2", "3", "4", "5"]),  # a text comes behind all numbers
        ("layers", ["10", "5", "1", "2", "3", "4"]),
        ("-accuracy.max", ["4", "2", "1", "10", "3", "5"]),
        ("state,-time", ["4", "10", "3", "2", "1", "5"]),
    ],
)
def test_rows_are_sorted_and_those_without_a_value_come_last(sort: str, wanted: list[str]) -> None:
    assert names(sort_rows(ROWS[::-1], parse_sort(sort), COLUMNS)) == wanted


def test_ranks_leave_out_what_failed_and_what_has_no_value() -> None:
    ranks = rank_rows(ROWS, BEST)
    assert ranks == {"144.2": 1, "144.1": 2, "144.10": 2}
    assert names(sort_by_rank(ROWS, ranks)) == ["2", "1", "10", "3", "4", "5"]
    assert rank_rows(ROWS, Objective("accuracy", Goal.MINIMIZE)) == {"144.1": 1, "144.10": 2, "144.2": 3}
    killed = [row._replace(state="KILLED") if row.name == "144.2" else row for row in ROWS]
    assert rank_rows(killed, BEST) == {"144.1": 1, "144.10": 1}


@pytest.mark.parametrize(
    ("sort", "known", "wanted"),
    [
        ("", None, None),
        ("", BEST, BEST),
        ("time", BEST, BEST),
        ("time", None, None),
        ("-accuracy", None, BEST),
        ("accuracy.last,time", None, Objective("accuracy", Goal.MINIMIZE)),
        ("accuracy", BEST, BEST),
    ],
)
def test_the_first_metric_of_the_order_says_what_is_good(
    sort: str, known: Objective | None, wanted: Objective | None
) -> None:
    assert choose_objective(parse_sort(sort), frozenset({"accuracy"}), known) == wanted


def test_a_name_of_a_parameter_and_a_metric_sorts_by_the_parameter_and_keeps_the_goal_of_the_set() -> None:
    known, both = Objective("accuracy", Goal.MAXIMIZE), frozenset({"lr", "accuracy"})
    assert choose_objective(parse_sort("lr"), both, known, frozenset({"lr"})) == known
    assert choose_objective(parse_sort("lr"), both, None, frozenset({"lr"})) is None
    wanted = Objective("lr", Goal.MINIMIZE)
    assert choose_objective(parse_sort("metrics.lr"), both, known, frozenset({"lr"})) == wanted


def test_parameters_that_are_equal_in_all_rows_are_listed_separately() -> None:
    assert find_varying(ROWS[:3]) == (["lr"], {"opt": "adam w"})
    assert find_varying(ROWS) == (["lr", "opt", "layers"], {})
    assert find_varying([]) == ([], {})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-3", 0.001),
        ("-.5", -0.5),
        ("7", 7.0),
        ("nan", None),
        ("1_0", None),
        ("0x1", None),
        ("", None),
        ("1" * 50, None),
    ],
)
def test_only_plain_numbers_are_numbers(text: str, number: float | None) -> None:
    assert read_number(text) == number


def workers(count: int, seconds: float, rate: float | None, accuracy: float, state: str = "FINISHED") -> ResultRow:
    metrics = {"accuracy": Numbers((accuracy,))} | ({} if rate is None else {"rate": Numbers((1.0, rate))})
    return make_row(count, state=state, seconds=seconds, workers=count, metrics=metrics)


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
