"""Which value of a run counts."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.run_value import RunValue, describe_value, summarize_value
from riseml.spec.config.types import BEST_VALUE, Goal, ValueKind, ValueRule
from tests.unit.analysis.result_rows import Numbers

LAST = ValueRule(ValueKind.LAST)
MEAN = ValueRule(ValueKind.MEAN, 3)
AT = ValueRule(ValueKind.AT, 2)
NUMBERS = st.floats(-1e6, 1e6)


def follow(rule: ValueRule, *values: float, goal: Goal = Goal.MINIMIZE) -> RunValue:
    run = RunValue(goal, rule)
    for step, value in enumerate(values, 1):
        run.add(value, step)
    return run


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (BEST_VALUE, (3.0, 1.0, 2.0), 1.0),
        (BEST_VALUE, (3.0, math.nan, 2.0), 2.0),  # it has recovered
        (BEST_VALUE, (3.0, 1.0, math.nan), None),
        (BEST_VALUE, (3.0, -math.inf), None),
        (BEST_VALUE, (), None),
        (LAST, (3.0, 1.0, 2.0), 2.0),
        (LAST, (3.0, 1.0, math.inf), None),
        (MEAN, (9.0, 1.0, 2.0, 3.0), 2.0),
        (MEAN, (1.0, 2.0), 1.5),
        (MEAN, (1.0, math.nan, 3.0), None),
        (MEAN, (math.nan, 1.0, 2.0, 3.0), 2.0),
        (MEAN, (1e308, 1e308, 1e308), 1e308),
        (AT, (3.0, 1.0, 2.0), 1.0),
        (AT, (3.0, 1.0, math.nan), 1.0),  # what comes later was not asked for
        (AT, (3.0, math.nan, 1.0), None),
        (AT, (3.0,), None),
    ],
)
def test_the_value_of_a_run(rule: ValueRule, values: tuple[float, ...], expected: float | None) -> None:
    assert follow(rule, *values).find_value() == (None if expected is None else pytest.approx(expected))


@given(st.lists(NUMBERS, min_size=1), st.sampled_from(list(Goal)))
def test_rules_agree_with_their_words_for_finite_values(values: list[float], goal: Goal) -> None:
    best = max(values) if goal is Goal.MAXIMIZE else min(values)
    assert follow(BEST_VALUE, *values, goal=goal).find_value() == best
    assert follow(LAST, *values, goal=goal).find_value() == values[-1]
    assert follow(MEAN, *values, goal=goal).find_value() == pytest.approx(fmean(values[-3:]))
    assert follow(AT, *values, goal=goal).find_value() == (values[1] if len(values) > 1 else None)


@given(st.lists(NUMBERS | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1), st.sampled_from(list(Goal)))
def test_a_summary_says_the_same(values: list[float], goal: Goal) -> None:
    for rule in (BEST_VALUE, LAST):
        assert summarize_value(Numbers(tuple(values)), goal, rule) == follow(rule, *values, goal=goal).find_value()


@given(st.lists(NUMBERS, max_size=5), st.lists(NUMBERS, min_size=1, max_size=5), st.sampled_from([BEST_VALUE, LAST]))
def test_values_of_earlier_attempts_never_count(earlier: list[float], later: list[float], rule: ValueRule) -> None:
    run = follow(rule, *earlier)
    for step, value in enumerate(later, 1):
        run.add(value, step, 2)
    run.add(-1e9, 9, 1)  # a late line of the first attempt
    assert run.find_value() == run.find_value(2) == follow(rule, *later).find_value()
    assert run.find_value(3) is None, "the third attempt has reported nothing"


def test_before_its_step_a_run_is_compared_by_its_last_value() -> None:
    run = follow(ValueRule(ValueKind.AT, 5), 3.0, 1.0, 2.0)
    assert (run.find_so_far(), run.find_value()) == (2.0, None)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (BEST_VALUE, "the smallest loss"),
        (LAST, "the smallest last loss"),
        (MEAN, "the smallest mean of the last 3 values of loss"),
        (AT, "the smallest loss at step 2"),
    ],
)
def test_words_say_which_value_counts(rule: ValueRule, words: str) -> None:
    assert describe_value("loss", Goal.MINIMIZE, rule) == words
