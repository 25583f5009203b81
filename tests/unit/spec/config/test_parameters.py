"""The values of parameters, and the placeholders that they fill."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config, load_config
from tests.unit.spec.examples import DISTRIBUTED, HEAD


def _parameter(text: str) -> tuple[str, ...]:
    return load_config(f"{HEAD}  run: t {{{{p}}}}\n  parameters: {{p: {text}}}\n").train.parameters[0].values


def test_undefined_parameters_of_the_seed_are_located() -> None:
    found = check_config(DISTRIBUTED).problems
    assert [(one.line, one.column, one.problem) for one in found] == [
        (6, 5, "16384 has no unit and is read as 16384 MiB"),
        (19, 40, 'there is no parameter "num-layers"'),
        (20, 43, 'there is no parameter "learning-rate"'),
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1", ("0.1",)),
        ("[1e-6, 1.10, 012, yes, 22:22, null, ~]", ("1e-6", "1.10", "012", "yes", "22:22", "null", "~")),
        ('["", "a b", \'$x; rm\']', ("", "a b", "$x; rm")),
        ("{range: {min: 2, max: 6, step: 1}}", ("2", "3", "4", "5", "6")),
        ("{range: {min: 0.1, max: 0.5, step: .1}}", ("0.1", "0.2", "0.3", "0.4", "0.5")),
        ("{range: {min: 1e-6, max: 3e-6, step: 1e-6}}", ("1e-6", "2e-6", "3e-6")),
        ("{range: {min: -1, max: 1, step: 0.5}}", ("-1.0", "-0.5", "0.0", "0.5", "1.0")),
        ("{range: {min: 1, max: 1, step: 1}}", ("1",)),
        ("{range: {min: 100, max: 1e3, step: 450}}", ("100", "550", "1000")),
    ],
)
def test_values_of_a_parameter_stay_as_written(text: str, values: tuple[str, ...]) -> None:
    assert _parameter(text) == values
