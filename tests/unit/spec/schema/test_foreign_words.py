"""Words of other tools, and what riseml calls it."""

from __future__ import annotations

import pytest

from riseml.spec.schema.foreign_words import explain_call, explain_key, explain_map, explain_value, translate_key
from riseml.spec.yaml.problems import KeyPath

SEARCH: KeyPath = ("train", "search")
PARAMETER: KeyPath = ("train", "parameters", "lr")
STOPS_EARLY = "this stops trials early: write `method: tpe` and `stop: {method: hyperband}`"


@pytest.mark.parametrize(
    ("key", "path", "word"),
    [
        ("n_trials", SEARCH, "trials"),
        ("direction", SEARCH, "goal"),
        ("sampler", SEARCH, "method"),
        ("grace_period", (*SEARCH, "stop"), "after"),
        ("hparams", ("train",), "parameters"),
        ("low", (*PARAMETER, "uniform"), "min"),
        ("low", ("train",), None),
        ("trials", SEARCH, None),
    ],
)
def test_a_key_of_another_tool_is_translated_in_its_section(key: str, path: KeyPath, word: str | None) -> None:
    assert translate_key(key, path) == word


@pytest.mark.parametrize(
    ("key", "path", "hint"),
    [
        ("loguniform", PARAMETER, "are `log`"),
        ("choice", PARAMETER, "write the choices as a list"),
        ("randint", PARAMETER, "whole numbers are `int`"),
        ("gaussian", PARAMETER, "numbers near a mean are `normal`"),
        ("lognormal", PARAMETER, "there is no such distribution"),
        ("step", (*PARAMETER, "log"), "magnitudes have no steps"),
        ("base", (*PARAMETER, "log"), "remove it"),
        ("max_concurrent", SEARCH, "it is `concurrency`, in train"),
    ],
)
def test_a_key_that_riseml_lacks_has_a_hint(key: str, path: KeyPath, hint: str) -> None:
    assert hint in (explain_key(key, path, ["min", "max"]) or "")


def test_a_key_of_nobody_has_the_usual_hint() -> None:
    assert explain_key("abc", ("train",), []) is None


@pytest.mark.parametrize(
    ("value", "path", "hint"),
    [
        ("bayesian", (*SEARCH, "method"), 'did you mean "tpe"?'),
        (
            "hyperband",
            (*SEARCH, "method"),
            STOPS_EARLY,
        ),
        ("SuccessiveHalving", (*SEARCH, "stop", "method"), 'did you mean "asha"?'),
        ("max", (*SEARCH, "goal"), 'did you mean "maximize"?'),
        ("abc", (*SEARCH, "goal"), None),
    ],
)
def test_a_value_of_another_tool_has_a_hint(value: str, path: KeyPath, hint: str | None) -> None:
    assert explain_value(value, path) == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tune.loguniform(1e-5, 0.1)", "are `log`"),
        ("uniform(0, 1)", "numbers are `uniform`"),
        ("print(1)", ""),
        ("uniform", ""),
    ],
)
def test_a_call_as_the_text_of_a_parameter_has_a_hint(text: str, hint: str) -> None:
    told = explain_call(text)
    assert hint in told if told else not hint


def test_a_map_as_the_metric_has_a_hint() -> None:
    assert explain_map((*SEARCH, "metric")) == "write `metric: accuracy`, and `goal: maximize` beside it"
    assert explain_map(("train",)) is None
