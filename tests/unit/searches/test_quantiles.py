"""Numbers of a distribution by their place: every number comes back from its place."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.searches.quantiles import find_place, find_place_ends, needs_place, write_number
from riseml.spec.config.types import Distribution, Scale

DISTRIBUTIONS = (
    Distribution(Scale.NORMAL, -6, 6, mean=0, sd=1),
    Distribution(Scale.NORMAL, 99.94, 100.06, mean=100, sd=0.01),
    Distribution(Scale.UNIFORM, 0, 0, low_formula="-a", high_formula="a"),
    Distribution(Scale.UNIFORM, 0, 0, 0.25, high_formula="a"),
    Distribution(Scale.LOG, 1e-6, 0, high_formula="a / 100"),
    Distribution(Scale.INT, 16, 0, 16, high_formula="a * 64"),
    Distribution(Scale.INT, 1, 0, by_magnitude=True, high_formula="a * 100"),
    Distribution(Scale.INT, 0, 3, low_formula="a"),
)


@given(st.sampled_from(DISTRIBUTIONS), st.floats(0, 1), st.sampled_from(["1", "2", "3"]))
def test_a_number_comes_back_from_its_place(distribution: Distribution, share: float, text: str) -> None:
    first, last = find_place_ends(distribution)
    number = write_number(distribution, first + share * (last - first), {"a": text})
    place = find_place(distribution, number, {"a": text})
    assert first <= place <= last
    assert write_number(distribution, place, {"a": text}) == number


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_places_go_from_end_to_end(distribution: Distribution) -> None:
    assert needs_place(distribution)
    numbers = [float(write_number(distribution, place, {"a": "2"})) for place in find_place_ends(distribution)]
    assert numbers == sorted(numbers)


def test_whole_numbers_are_equally_likely() -> None:
    distribution = Distribution(Scale.INT, 1, 0, high_formula="a * 2")
    counts = Counter(write_number(distribution, index / 1_000, {"a": "2"}) for index in range(1_000))
    assert counts == {"1": 250, "2": 250, "3": 250, "4": 250}


def test_a_normal_distribution_has_its_mean_and_deviation() -> None:
    distribution = Distribution(Scale.NORMAL, -5, 7, mean=1, sd=1)
    assert [write_number(distribution, place, {}) for place in (0.158655, 0.5, 0.841345)] == ["0.0", "1.0", "2.0"]
