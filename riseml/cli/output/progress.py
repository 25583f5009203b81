"""The progress of long work on one line: a bar, amounts, the rate and the time left. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from riseml.base.records import dataclass
from riseml.cli.output.style import Style, paint
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width, shorten_to_width
from riseml.files.project.messages import format_size

_WINDOW = 10.0  # a rate is the mean over this many seconds
_SHORTEST_SPAN = 0.5  # a rate over fewer seconds means nothing
_NARROWEST_BAR = 6  # columns of a terminal
_WIDEST_BAR = 30
_FULL = "━"
_HALF = "╸"
_EMPTY = "─"
_COLOUR = "32"


@dataclass(slots=True)
class RateMeter:
    """Measures how fast something grows, from the last seconds.

    Example:
        >>> meter = RateMeter()
        >>> meter.add_amount(0, 0.0)
        >>> meter.add_amount(5_000_000, 2.0)
        >>> meter.rate
        2500000.0
    """

    _amounts: deque[tuple[float, int]] = field(default_factory=deque)  # seconds and amount

    def add_amount(self, amount: int, now: float) -> None:
        """Remember an amount. A smaller amount than before begins a new measurement."""
        if self._amounts and amount < self._amounts[-1][1]:
            self._amounts.clear()
        self._amounts.append((now, amount))
        while len(self._amounts) > 2 and self._amounts[1][0] <= now - _WINDOW:
            self._amounts.popleft()

    @property
    def rate(self) -> float | None:
        """The growth per second; None: not known yet."""
        span = self._amounts[-1][0] - self._amounts[0][0] if self._amounts else 0.0
        return (self._amounts[-1][1] - self._amounts[0][1]) / span if span >= _SHORTEST_SPAN else None


def describe_bytes(amount: int, total: int | None, rate: float | None) -> str:
    """Return amounts, rate and time left: `12.3 MB of 45.6 MB, 8.1 MB/s, 0:04 left`."""
    parts = [format_size(amount) if total is None else f"{format_size(amount)} of {format_size(total)}"]
    if rate is not None:
        parts.append(f"{format_size(rate)}/s")
        if total is not None and rate > 0:
            parts.append(f"{format_clock((total - amount) / rate)} left")
    return ", ".join(parts)


def format_clock(seconds: float) -> str:
    """Return a duration as a clock shows it: `0:04`, `1:02:03`."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def draw_progress(title: str, fraction: float | None, amounts: str, style: Style) -> list[str]:
    """Return one line with a title, a bar and amounts; two where the terminal is too narrow for one.

    Args:
        title: what is done; may be foreign.
        fraction: from 0 to 1; None: not known, and no bar is drawn.
        amounts: the text after the bar; may be foreign.
        style: has the width.
    """
    width = style.width or 80
    title = clean_text(title)
    amounts = clean_text(amounts)
    room = width - measure_width(title) - measure_width(amounts) - 4
    if fraction is None:
        line = f"{title}  {amounts}"
        if measure_width(line) <= width:
            return [line]
        return [shorten_to_width(title, width), shorten_to_width(f"  {amounts}", width)]
    if room >= _NARROWEST_BAR:
        return [f"{title}  {_draw_bar(fraction, min(room, _WIDEST_BAR), style)}  {amounts}"]
    room = width - measure_width(amounts) - 4
    if room >= _NARROWEST_BAR:
        below = f"  {_draw_bar(fraction, min(room, _WIDEST_BAR), style)}  {amounts}"
    else:
        below = shorten_to_width(f"  {amounts}", width)
    return [shorten_to_width(title, width), below]


def _draw_bar(fraction: float, width: int, style: Style) -> str:
    halves = round(min(1.0, max(0.0, fraction)) * width * 2)
    drawn = _FULL * (halves // 2) + _HALF * (halves % 2)
    return paint(drawn, _COLOUR, colour=style.colour) + _EMPTY * (width - len(drawn))
