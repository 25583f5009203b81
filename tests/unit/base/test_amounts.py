"""Amounts as people read them: three digits, and the unit that fits."""

from __future__ import annotations

import pytest

from riseml.base.amounts import format_bytes, format_digits, format_rate


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.977 KiB"),
        (16 * 2**20, "16 MiB"),
        (1.02 * 2**30, "1.02 GiB"),
        (999.4 * 2**30, "999 GiB"),
        (2**60, "1048576 TiB"),
    ],
)
def test_bytes_have_the_unit_that_fits(size: float, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(("rate", "text"), [(12, "12/s"), (1, "1/s"), (0.1, "6/min"), (0, "0/min")])
def test_a_rate_below_one_a_second_is_that_of_a_minute(rate: float, text: str) -> None:
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0004, "0"),
        (0.1234, "0.123"),
        (1.5, "1.5"),
        (9.949, "9.95"),
        (9.95, "9.9"),
        (99.45, "99.5"),
        (99.5, "100"),
    ],
)
def test_a_number_has_three_digits_at_most(value: float, text: str) -> None:
    assert format_digits(value) == text
