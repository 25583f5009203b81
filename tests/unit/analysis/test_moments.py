"""Moments in conditions: dates, times and ages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from riseml.analysis.moments import read_period
from riseml.base.errors import UsageError
from tests.unit.analysis.result_rows import NOW


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-01", "2026-11-01T00:00:00", "2026-11-02T00:00:00"),
        ("2026-11-01T10:00", "2026-11-01T10:00:00", "2026-11-01T10:01:00"),
        ("2026-11-01 10:00", "2026-11-01T10:00:00", "2026-11-01T10:01:00"),
        ("2026-11-01T10:00:30Z", "2026-11-01T10:00:30", "2026-11-01T10:00:31"),
        ("2026-11-01T10:00:30.25+02:00", "2026-11-01T08:00:30", "2026-11-01T08:00:31"),
        ("now", "2026-11-28T12:00:00", "2026-11-28T12:00:00"),
        ("now-2h", "2026-11-28T10:00:00", "2026-11-28T10:00:00"),
        ("now-1h30m", "2026-11-28T10:30:00", "2026-11-28T10:30:00"),
        ("now-7d", "2026-11-21T12:00:00", "2026-11-21T12:00:00"),
    ],
)
def test_a_moment_is_as_exact_as_it_is_written(text: str, start: str, end: str) -> None:
    period = read_period(text, NOW)
    assert (period.start, period.end) == tuple(
        datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (start, end)
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("yesterday", "'yesterday' is no moment", "write 2026-11-01, 2026-11-01T10:00, or now-2h for two hours ago"),
        ("2h", "'2h' is no moment", "write now-2h for that long ago"),
        ("2026-13-01", "'2026-13-01' is in no calendar", "write 2026-11-01"),
        ("9999-12-31", "'9999-12-31' is in no calendar", ""),
        ("now-soon", "'now-soon' is no moment: \"soon\" is not a duration", "write 90, 30s, 10m, 2h or 1d"),
        ("", "'' is no moment", ""),
    ],
)
def test_what_is_no_moment_is_refused_with_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_period(text, NOW)
    assert refused.value.message == message
    assert (refused.value.hint or "").startswith(hint)


def test_signs_compare_with_the_whole_period() -> None:
    day = read_period("2026-11-01", NOW)
    moments = [
        datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC),
        day.start,
        datetime(2026, 11, 1, 23, tzinfo=UTC),
        day.end,
    ]
    met = {sign: [day.meets(moment, sign) for moment in moments] for sign in ("<", "<=", "=", "!=", ">=", ">")}
    assert met == {
        "<": [True, False, False, False],
        "<=": [True, True, True, False],
        "=": [False, True, True, False],
        "!=": [True, False, False, True],
        ">=": [False, True, True, True],
        ">": [False, False, False, True],
    }
