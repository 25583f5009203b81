"""The texts of parameters as values, for readers of riseml-configuration.yml that want numbers."""

from __future__ import annotations

import pytest
import yaml

from riseml.spec.scalars.quantities import read_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.0001", 0.0001),
        ("1e-7", 1e-7),
        ("1e5", 100000.0),
        ("-3", -3),
        ("64", 64),
        ("true", True),
        ("false", False),
        *((text, text) for text in ("yes", "adam", "", "007", "+5", "1_000", "0x10", "nan", ".inf", "1e999", "1" * 41)),
        ("0.12345678901234567890", "0.12345678901234567890"),
    ],
)
def test_a_parameter_is_a_number_where_nothing_is_lost(text: str, value: object) -> None:
    found = read_value(text)
    assert (found, type(found)) == (value, type(value))
    assert yaml.safe_load(yaml.safe_dump({"lr": found})) == {"lr": value}
