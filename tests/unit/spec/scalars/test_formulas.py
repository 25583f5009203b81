"""Formulas compute what Python computes, and nothing else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.spec.scalars.formulas import NoValue, parse_comparison, parse_formula
from riseml.spec.scalars.texts import BadText

TEXTS = {"layers": "3", "units": "64", "optimizer.lr": "1e-3", "batch-size": "32", "zero": "0"}


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        ("{{layers}} * 64", 192, ("layers",)),
        ("layers * 64", 192, ("layers",)),
        (" {{ units }} // 5 % 7 ", 5, ("units",)),
        ("-(units - 2 * layers) / 4", -14.5, ("units", "layers")),
        ("min(units, {{batch-size}}, 100)", 32, ("units", "batch-size")),
        ("max(1, optimizer.lr * 1000)", 1, ("optimizer.lr",)),
        ("{{optimizer.lr}} + layers", 3.001, ("optimizer.lr", "layers")),
        ("1e3 + .5", 1000.5, ()),
    ],
)
def test_a_formula_has_a_value(text: str, value: float, names: tuple[str, ...]) -> None:
    formula = parse_formula(text)
    assert formula.compute(TEXTS) == value
    assert formula.names == names


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("units * layers <= 512", "yes"),
        ("units * layers <= 100", "no"),
        ("16 <= {{units}} < 64", "no"),
        ("units % layers == 1", "yes"),
        ("units / zero > 1", "no"),
    ],
)
def test_a_comparison_holds_or_not(text: str, answer: str) -> None:
    assert parse_comparison(text).holds(TEXTS) is (answer == "yes")


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        ("metrics.latency <= 50", 10),
        ("50 >= {{metrics.latency}} >= 80", 30),
        ("metrics.latency < 60", 1e-9),
        ("metrics.latency < 61", 0),
        ("metrics.loss < 61", math.inf),
        ("units / zero > 1", math.inf),
        ("units * 1e308 < 1e308 * 100 - 1e308 * 100", math.inf),
    ],
)
def test_a_comparison_says_by_how_much_it_fails(text: str, excess: float) -> None:
    texts = {**TEXTS, "metrics.latency": "60.0", "metrics.loss": "nan"}
    assert parse_comparison(text).measure_excess(texts) == excess


@pytest.mark.parametrize(
    "text",
    [
        "",
        "layers *",
        "2 ** 100",
        "__import__('os')",
        "open(units)",
        "units.real()",
        "(1).real",
        "[1, 2][0]",
        "layers if units else 1",
        "'a' * 3",
        "True + 1",
        "1j",
        "min(units)",
        "min(*units)",
        "lambda: 1",
        "layers\0",
        "(" * 150,
        "units := 3",
    ],
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(BadText, match="is not a formula"):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("units * 2", "compares nothing"),
        ("units < 2 and layers < 3", "has several conditions"),
        ("units in layers", "a sign that riseml does not know"),
        ("units < 2 ** 3", "is not a formula"),
        ("1 < " + "2" * 200, "the formula has 204 characters"),
    ],
)
def test_what_is_no_comparison_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadText, match=problem):
        parse_comparison(text)


def test_a_comparison_is_no_formula() -> None:
    with pytest.raises(BadText, match="is a comparison"):
        parse_formula("units < 2")


@pytest.mark.parametrize("text", ["1 / zero", "units % zero", "1e200 * 1e200", "1e999"])
def test_a_formula_without_a_value_says_why(text: str) -> None:
    with pytest.raises(NoValue, match=r"divides by 0|too large"):
        parse_formula(text).compute(TEXTS)


@given(st.text("ab01.+-*/%()<>=, {}", max_size=40))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    for parse in (parse_formula, parse_comparison):
        try:
            formula = parse(text)
        except BadText:
            continue
        formula.holds(dict.fromkeys(formula.names, "3"))
