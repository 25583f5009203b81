"""Times as the Docker Engine writes them, compared and converted without losing a digit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.executors.logs.timestamps import is_before, to_datetime, to_nanoseconds, to_text

NANOSECONDS = st.integers(0, 4 * 10**18)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2026-08-31T07:23:46.5Z", 1_788_161_026_500_000_000),
        ("2026-08-31T07:23:46Z", 1_788_161_026_000_000_000),
        ("2026-08-31T07:23:46.000000001Z", 1_788_161_026_000_000_001),
        ("1970-01-01T00:00:00.123456789Z", 123_456_789),
    ],
)
def test_a_time_is_read_to_its_last_digit(text: str, nanoseconds: int) -> None:
    assert to_nanoseconds(text) == nanoseconds


@given(NANOSECONDS)
def test_a_time_that_is_written_is_read_as_the_same(nanoseconds: int) -> None:
    assert to_nanoseconds(to_text(nanoseconds)) == nanoseconds


@given(NANOSECONDS, NANOSECONDS, st.booleans())
def test_times_compare_as_their_numbers_however_many_digits_they_have(first: int, second: int, short: bool) -> None:  # noqa: FBT001  # drawn
    stamp = to_text(first).rstrip("0Z") if short else to_text(first)
    stamp = f"{stamp.rstrip('.')}Z" if short else stamp
    assert is_before(stamp, to_text(second)) == (first < second)
    assert is_before(to_text(second), stamp) == (second < first)


def test_a_datetime_has_no_more_than_microseconds() -> None:
    assert to_datetime(1_999) == datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)
