"""Groups of runs that differ in their seed alone, and whether two of them differ."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.group_comparison import compare_groups
from riseml.analysis.groups import Group, find_best_run, group_rows, rank_groups
from riseml.analysis.rows import ResultRow
from riseml.spec.config.types import Goal


def make_rows(number: int, lr: str, *values: float | None, first: int = 1, state: str = "FINISHED") -> list[ResultRow]:
    return [
        ResultRow(
            f"{number}.{first + at}",
            state,
            "COMPLETED",
            (number, first + at),
            {"seed": str(at + 1), "lr": lr},
            value=value,
        )
        for at, value in enumerate(values)
    ]


def group(*rows: list[ResultRow]) -> list[Group]:
    return group_rows([row for some in rows for row in some], lambda row: row.value)


STEADY = make_rows(144, "0.1", 0.91, 0.92, 0.93)
LUCKY = make_rows(144, "0.01", 0.99, 0.5, 0.6, first=4)


def test_runs_of_one_point_are_one_row_with_mean_deviation_and_n() -> None:
    steady, lucky = group(STEADY, LUCKY)
    assert (steady.parameters, steady.names) == ({"lr": "0.1"}, ("144.1", "144.2", "144.3"))
    assert steady.spread is not None
    assert (steady.spread.n, steady.spread.mean) == (3, fmean((0.91, 0.92, 0.93)))
    assert steady.spread.deviation == stdev((0.91, 0.92, 0.93))
    assert [run.seed for run in lucky.runs] == ["1", "2", "3"]


def test_groups_are_ranked_by_their_means_and_not_by_the_luckiest_seed() -> None:
    groups = group(STEADY, LUCKY)
    assert rank_groups(groups, Goal.MAXIMIZE) == {"144.1": 1, "144.4": 2}
    assert rank_groups(groups, Goal.MINIMIZE) == {"144.1": 2, "144.4": 1}
    best = find_best_run(groups, Goal.MAXIMIZE)
    assert best is not None
    assert (best.name, best.seed, best.value) == ("144.4", "1", 0.99)


def test_a_group_with_a_run_that_failed_goes_on_or_was_stopped_has_no_rank() -> None:
    failed = [*make_rows(144, "0.1", 0.9), *make_rows(144, "0.1", None, first=2, state="FAILED")]
    diverged = make_rows(144, "0.2", 0.9, None)
    running = [*make_rows(144, "0.3", 0.9), *make_rows(144, "0.3", 0.8, first=2, state="RUNNING")]
    stopped = [row._replace(reason="STOPPED_EARLY") for row in make_rows(144, "0.4", 0.9)]
    groups = group(failed, diverged, running, stopped)
    assert [(one.failed, one.unfinished, one.stopped) for one in groups] == [(1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert rank_groups(groups, Goal.MAXIMIZE) == {}
    assert all(one.spread is not None and one.spread.n == 1 for one in groups), "a run that goes on has no value yet"


def test_equal_points_of_two_sets_are_two_groups() -> None:
    assert len(group(make_rows(144, "0.1", 0.9), make_rows(145, "0.1", 0.9))) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-10, 10)), min_size=1))
def test_every_run_is_in_one_group(runs: list[tuple[str, float]]) -> None:
    rows = [make_rows(144, lr, value, first=at)[0] for at, (lr, value) in enumerate(runs, 1)]
    groups = group(rows)
    assert sorted(name for one in groups for name in one.names) == sorted(row.name for row in rows)
    assert len(groups) == len({lr for lr, _ in runs})


def test_shared_seeds_are_compared_in_pairs() -> None:
    """Each seed gains 0.01 or so, which is less than the seeds differ: only the pairs show it."""
    first, second = group(
        make_rows(144, "1", 0.5, 0.6, 0.7, 0.8, 0.9), make_rows(145, "1", 0.51, 0.612, 0.709, 0.811, 0.908)
    )
    paired = compare_groups(first, second, "accuracy")
    assert (paired.test, paired.pairs) == ("paired", 5)
    assert paired.result is not None
    assert paired.result.p < 0.001
    assert paired.verdict == "a difference is shown (p < 0.001, n = 5 and 5): 145.1 has the larger mean accuracy"
    unpaired = [row._replace(parameters={"lr": "1"}) for row in make_rows(145, "1", 0.51, 0.612, 0.709, 0.811, 0.908)]
    welch = compare_groups(first, group(unpaired)[0], "accuracy")
    assert welch.test == "welch"
    assert welch.verdict == "no difference shown (p = 0.92, n = 5 and 5)"
    assert welch.notes == ("That is not a proof that they are equal",)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((0.9,), (0.8, 0.7), "too few values to compare (n = 1 and 2): a test needs at least 2 of each"),
        (
            (0.9, 0.9),
            (0.8, 0.8),
            "no test is possible (n = 2 and 2): both differ by the same amount with every seed, and nothing says how "
            "much that would vary",
        ),
        (
            (0.9, 0.9),
            (0.8, 0.8, 0.8),
            "no test is possible (n = 2 and 3): all values of each are equal, and nothing says how much they would "
            "vary",
        ),
    ],
)
def test_too_few_or_equal_values_are_said(first: tuple[float, ...], second: tuple[float, ...], verdict: str) -> None:
    one, other = group(make_rows(144, "1", *first), make_rows(145, "1", *second))
    comparison = compare_groups(one, other, "accuracy")
    assert (comparison.verdict, comparison.result) == (verdict, None)


def test_few_values_and_runs_that_were_left_out_are_said() -> None:
    first, second = group(make_rows(144, "1", 0.5, 0.6, 0.7), make_rows(145, "1", 0.51, 0.66, None))
    comparison = compare_groups(first, second, "accuracy")
    assert comparison.notes == (
        "145.1: left out 1 without a value; what is left may be the better ones",
        "With n = 3 and 2, only a difference that is large beside the spread of the values can be shown",
        "That is not a proof that they are equal",
    )


def test_values_that_are_not_finite_are_none() -> None:
    values = {"144.1": 0.9, "144.2": math.nan, "144.3": 0.8}
    (steady,) = group_rows(STEADY, lambda row: values[row.name])
    assert (steady.failed, len(steady.runs)) == (1, 2)
