"""What a live view remembers of the last minutes."""

from __future__ import annotations

import pytest

from riseml.analysis.trends import MEMORY, Trends
from tests.unit.analysis.live_samples import make_sample, watch


def test_trends_forget_what_is_old_and_jobs_that_have_ended() -> None:
    samples, trends = watch({"4.master": {"cpu": 10.0}, "4.ps.1": {"cpu": 20.0}}, seconds=1000)
    assert len(trends.list_amounts("4.master", lambda one: one["cpu"])) == MEMORY / 2 + 1
    trends.add_samples(samples[:1], 1002.0)
    assert trends.list_amounts("4.ps.1", lambda one: one["cpu"]) == []


def test_a_server_that_starts_again_counts_lines_from_0() -> None:
    trends = Trends()
    for now, lines in enumerate([100, 120, 3, 5]):
        trends.add_samples([make_sample("4.master", lines=lines)], 2.0 * now)
    assert trends.count_lines("4.master", 60) == (2, 2.0)
    assert trends.list_line_rates("4.master") == [1.0]


def test_the_past_grows_also_when_samples_come_more_often_than_once_a_second() -> None:
    trends = Trends()
    for tick in range(101):
        trends.add_samples([make_sample("4.master", lines=tick)], tick * 0.1)
    assert 8 <= len(trends.list_amounts("4.master", lambda one: one["lines"])) <= 11
    assert trends.list_amounts("4.master", lambda one: one["lines"])[-1] == 100
    assert all(rate == pytest.approx(10) for rate in trends.list_line_rates("4.master"))
    first = Trends()
    for now in (0.0, 0.0, 0.1):
        first.add_samples([make_sample("4.master", lines=3)], now)
    assert (first.count_lines("4.master", 60), first.list_line_rates("4.master")) == (None, [])
