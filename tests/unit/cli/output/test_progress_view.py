"""How far experiments are, as text."""

from __future__ import annotations

import pytest

from riseml import wire
from riseml.cli.output.progress_view import describe_progress, describe_rates, format_remaining, show_progress_cell

PROGRESS: wire.ProgressView = {
    "job": "master",
    "done": 3,
    "of": 10,
    "unit": "epoch",
    "fraction": 0.249,
    "per_second": None,
    "remaining": 712,
    "spread": 20,
    "rounds": 0,
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 5 s"),
        (42, "about 40 s"),
        (89, "about 90 s"),
        (700, "about 12 m"),
        (5000, "about 1 h 20 m"),
        (7190, "about 2 h"),
        (200_000, "about 2 d 8 h"),
        (172_800, "about 2 d"),
    ],
)
def test_an_estimate_is_as_exact_as_it_deserves(seconds: float, text: str) -> None:
    assert format_remaining(seconds) == text


def test_what_is_not_known_is_not_shown() -> None:
    assert describe_progress(PROGRESS) == "epoch 3/10, 24 %, about 12 m left"
    assert describe_progress({**PROGRESS, "unit": "", "done": 1.5, "remaining": None}) == "1.5/10, 24 %"
    assert describe_progress({**PROGRESS, "unit": "%", "remaining": None, "rounds": 2}) == "24 % of round 3"
    assert [show_progress_cell(progress) for progress in (None, PROGRESS)] == ["-", "24 %, about 12 m"]


def test_a_rate_is_shown_with_its_unit() -> None:
    rates: list[wire.RateView] = [{"unit": "step", "per_second": 3.4}, {"unit": "img", "per_second": 0.5}]
    assert describe_rates(rates) == "3.4 steps/s, 30 img/min"
    assert (show_progress_cell(None, rates), show_progress_cell(PROGRESS, rates)) == ("3.4 steps/s", "24 %, about 12 m")
