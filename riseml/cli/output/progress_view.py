"""How far experiments are, as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.progress import draw_progress
from riseml.cli.output.style import Style
from riseml.cli.output.text import clean_text, format_rate

if TYPE_CHECKING:
    from riseml import wire

_MINUTE = 60
_HOUR = 3600
_DAY = 86400
_NOUNS = frozenset({"step", "epoch", "sample", "image", "token", "example"})
_SHORT = 90  # seconds, below which they are shown


def format_remaining(seconds: float) -> str:
    """Return a time that is left, as exactly as an estimate deserves.

    Example:
        >>> [format_remaining(seconds) for seconds in (42, 700, 5000, 200000)]
        ['about 40 s', 'about 12 m', 'about 1 h 20 m', 'about 2 d 8 h']
    """
    if seconds < _SHORT:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    if seconds < _HOUR:
        return f"about {round(seconds / _MINUTE)} m"
    if seconds < _DAY:
        hours, minutes = divmod(round(seconds / (10 * _MINUTE)) * 10, 60)
        return f"about {hours} h {minutes} m" if minutes else f"about {hours} h"
    days, hours = divmod(round(seconds / _HOUR), 24)
    return f"about {days} d {hours} h" if hours else f"about {days} d"


def describe_progress(progress: wire.ProgressView) -> str:
    """Return `epoch 3/10, 24 %, about 12 m left`; of a bar that began again, how far its round is."""
    percent = f"{math.floor(100 * progress['fraction'])} %"
    rounds = f" of round {progress['rounds'] + 1}" if progress["rounds"] else ""
    parts = [f"{percent}{rounds}"]
    if progress["unit"] != "%":
        unit = f"{clean_text(progress['unit'])} " if progress["unit"] else ""
        parts.insert(0, f"{unit}{_format_amount(progress['done'])}/{_format_amount(progress['of'])}")
    if progress["remaining"] is not None:
        parts.append(f"{format_remaining(progress['remaining'])} left")
    return ", ".join(parts)


def describe_rates(rates: Sequence[wire.RateView]) -> str:
    """Return `3.4 steps/s, 120 samples/s`, or `30 steps/min` where it is less than one a second."""
    return ", ".join(_describe_rate(rate) for rate in rates)


def _describe_rate(rate: wire.RateView) -> str:
    amount, _, time = format_rate(rate["per_second"]).partition("/")
    unit = clean_text(rate["unit"])
    return f"{amount} {unit}{'s' if unit in _NOUNS else ''}/{time}"


def _format_amount(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.6g}"


def show_progress_cell(progress: wire.ProgressView | None, rates: Sequence[wire.RateView] = ()) -> str:
    """Return `24 %, about 12 m` for a table; where it is not known, the first rate, else `-`."""
    if progress is None:
        return describe_rates(rates[:1]) or "-"
    percent = f"{math.floor(100 * progress['fraction'])} %"
    return percent if progress["remaining"] is None else f"{percent}, {format_remaining(progress['remaining'])}"


def draw_job_progress(identity: str, progress: wire.ProgressView, style: Style) -> list[str]:
    """Return a bar with how far an experiment is."""
    return draw_progress(identity, progress["fraction"], describe_progress(progress), style)
