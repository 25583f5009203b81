"""The progress of long work on one line: the amounts, the rate and the time left."""

from __future__ import annotations

import re

import pytest

from riseml.cli.output.progress import RateMeter, describe_bytes, draw_progress, format_clock
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.unit.cli.explanations import MB


def test_a_rate_is_that_of_the_last_seconds() -> None:
    meter = RateMeter()
    assert meter.rate is None
    for now in range(30):
        meter.add_amount(MB * now if now < 10 else 10 * MB + 5 * MB * (now - 10), float(now))
    assert meter.rate == 5 * MB
    meter.add_amount(0, 30.0)  # another layer, another image
    assert meter.rate is None


@pytest.mark.parametrize(
    ("total", "rate", "shown"),
    [
        (45_600_000, 8_100_000, "12.3 MB of 45.6 MB, 8.1 MB/s, 0:04 left"),
        (45_600_000, 0.0, "12.3 MB of 45.6 MB, 0 B/s"),
        (None, 8_100_000, "12.3 MB, 8.1 MB/s"),
        (None, None, "12.3 MB"),
    ],
)
def test_amounts_rate_and_time_left(total: int | None, rate: float | None, shown: str) -> None:
    assert describe_bytes(12_300_000, total, rate) == shown


def test_a_clock() -> None:
    assert [format_clock(seconds) for seconds in (0, 59.6, 3723, -5)] == ["0:00", "1:00", "1:02:03", "0:00"]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("fraction", [None, 0.0, 0.27, 1.0, 7.5])
def test_progress_fits_every_terminal(width: int, fraction: float | None, *, colour: bool) -> None:
    amounts = "12.3 MB of 45.6 MB, 8.1 MB/s, 0:04 left"
    lines = draw_progress("Syncing", fraction, amounts, Style(colour, width))
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in lines]
    assert all(measure_width(text) <= width for text in plain)
    assert any("━" in text or "─" in text for text in plain) is (fraction is not None and width > 40)
    assert "Syncing" in plain[0]
    assert amounts[: width - 3] in "\n".join(plain)
