"""How fast a job is: steps, samples, images or tokens per second, from any source. Pure.

- A bar or a count that is known (`riseml.analysis.progress`) tells the rate of its unit.
- The steps of reports tell the rate of steps, also where no end is known. Steps that go back begin again.
- A metric such as `samples_per_second` tells its own rate; the name may have a part before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from riseml.analysis.progress import Progress, add_mark, find_rate, stands_still
from riseml.analysis.progress_lines import STEP
from riseml.base.records import dataclass

_NO_UNITS = ("%", "")
_OLD = 600.0  # seconds after which a rate that a job has told is not shown any more
_STEP_OF_REPORT = re.compile(rb'"step" *: *([0-9]{1,15}) *[,}]')
_TOLD = re.compile(
    rb'"(?:[^"]{0,60}[/_.])?(example|sample|image|token)s_per_second" *: *([0-9.]{1,40}(?:e[+-]?[0-9]{1,3})?) *[,}]'
)


@dataclass(frozen=True, slots=True)
class Rate:
    """How much of something a job does in a second."""

    unit: str  # one of it: `step`, `sample`
    per_second: float


@dataclass(frozen=True, slots=True)
class StepMarks:
    """When the steps of a job were reported."""

    marks: tuple[tuple[float, float], ...] = ()  # seconds and steps, both growing
    pause: float = 0.0  # the most seconds between two of them


def add_step(steps: StepMarks, step: float, now: float) -> StepMarks:
    """Return the marks with the last step that was reported."""
    if not steps.marks or step < steps.marks[-1][1]:
        return StepMarks(((now, step),))
    last_at, last = steps.marks[-1]
    if step == last:
        return steps
    return StepMarks(add_mark(steps.marks, now, step), max(steps.pause, now - last_at))


def read_report_step(line: bytes) -> int | None:
    """Return the step of a report; None: it has none."""
    match = _STEP_OF_REPORT.search(line)
    return None if match is None else int(match[1])


def read_told_rates(line: bytes) -> dict[str, float]:
    """Return the rates that a report tells as metrics, by their units."""
    rates: dict[str, float] = {}
    for unit, text in _TOLD.findall(line):
        try:
            rates[unit.decode()] = float(text)
        except ValueError:
            continue
    return rates


def find_rates(
    progress: Progress | None, steps: StepMarks, told_rates: Mapping[str, tuple[float, float]], now: float
) -> tuple[Rate, ...]:
    """Return how fast a job is; empty: not known.

    Args:
        progress: how far it is; None: not known.
        steps: of its reports.
        told_rates: what it has told as metrics: by units, seconds of the clock and amounts per second.
        now: seconds of the clock.
    """
    rates: dict[str, float] = {}
    if progress is not None and progress.per_second is not None and progress.unit not in _NO_UNITS:
        rates[progress.unit] = progress.per_second
    rate = None if stands_still(steps.marks, steps.pause, now) else find_rate(steps.marks)
    if rate is not None:
        rates.setdefault(STEP, rate[0])
    for unit, (at, per_second) in told_rates.items():
        if now - at <= _OLD:
            rates.setdefault(unit, per_second)
    return tuple(Rate(unit, per_second) for unit, per_second in rates.items())
