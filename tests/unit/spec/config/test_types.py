"""Conditions for notifications, as texts."""

from __future__ import annotations

import pytest

from riseml.spec.config.types import (
    MetricCondition,
    Relation,
)


@pytest.mark.parametrize("number", ["0.95", "5", "-1", "0.9500001", "1234567", "1234568", "1e-07", "0.1234567891"])
def test_a_condition_keeps_all_digits_of_its_value(number: str) -> None:
    """Its text is the key under which the server remembers that it was met."""
    condition = MetricCondition("loss", Relation.BELOW, float(number))
    assert float(str(condition).removeprefix("loss < ")) == float(number)
    assert str(MetricCondition("accuracy", Relation.ABOVE, 0.95)) == "accuracy > 0.95"
