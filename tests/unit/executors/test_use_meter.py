"""One reading of a container at a time: a difference needs two, and what is gone is not there."""

from __future__ import annotations

from riseml.executors.docker.stats import StatsDifference
from tests.unit.executors.test_traffic import make_row


def test_a_sample_is_the_difference_of_two_readings() -> None:
    difference = StatsDifference()
    assert difference.add_reading(make_row(0)) is None
    assert difference.add_reading({}) is None, "the container has ended"
    found = difference.add_reading(make_row(2))
    assert found is not None
    assert found.cpu == 10.0
    assert difference.add_reading(make_row(2)) is None, "the engine has measured nothing since"
