"""Durations are counted in buckets."""

from __future__ import annotations

from riseml.server.timings import DurationCounts


def test_durations_are_counted_in_buckets() -> None:
    counts = DurationCounts()
    for seconds in (0.0, 0.001, 0.002, 1e9, -1.0):
        counts.observe(seconds)
    found, total = counts.read()
    assert (found[0], found[1], found[-1]) == (3, 1, 1)
    assert total == 1e9 + 0.003
