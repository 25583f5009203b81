"""What is probably wrong with an experiment that runs, according to its metrics, its rate and what it uses. Pure.

Each rule answers with a remark or with nothing, and stays silent where it is not sure:

- **A loss that is not a number** any more: its last two values at least.
- **A loss that has grown tenfold** over its best mean, in each of its last three buckets, and is above the half of what
  it began with. Losses are metrics with `loss` as a word of their names.
- **A metric that stalls**, where the user has said which one and for how many steps: its best value is so old.
- **A rate that has dropped**: in the last five minutes less was done than half of what was ever done in five minutes.
- **Memory that grows towards its limit**: a line through ten minutes fits, more than half is used, and the line reaches
  the limit within two hours.
- **No progress**: `analysis.stalls` has that rule.
- **Idle GPUs**: none of ten minutes of samples of a job with GPUs has 1 per cent.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence

from riseml.base.amounts import format_rate
from riseml.base.records import dataclass

WINDOW = 600.0  # seconds of samples that are compared
_LOSS = re.compile(r"(?:^|[^a-z])loss(?:[^a-z]|$)", re.IGNORECASE)
_FEWEST_NOT_FINITE = 2
_GROWN = 10.0
_FEWEST_BUCKETS = 6
_LAST_BUCKETS = 3
_RATE_SECONDS = 300.0
_LEAST_MOVING = 60.0  # seconds of those beside a usual pause
_DROPPED = 0.5  # part of the least rate before
_FEWEST_SAMPLES = 30
_LEAST_FIT = 0.9  # of the variance that the line explains
_LONGEST_LEFT = 7200.0  # seconds
_LEAST_USED = 0.5  # part of the limit
_IDLE_GPU = 1.0  # per cent
_COVERED = 0.9  # part of the window that samples must span


class RemarkKind(enum.Enum):
    """What a remark is about."""

    NAN = "nan"
    DIVERGED = "diverged"
    STALLED = "stalled"
    STUCK = "stuck"  # nothing gives a sign of progress
    SLOWER = "slower"
    MEMORY = "memory"
    IDLE_GPU = "idle-gpu"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is probably wrong."""

    kind: RemarkKind
    text: str
    since: float | None = None  # seconds of the clock of what was compared: when it began; None: not known


@dataclass(frozen=True, slots=True)
class Mean:
    """Some values of a metric that follow each other."""

    mean: float | None  # of those that are finite; None: there is none
    minimum: float | None


def is_loss(name: str) -> bool:
    """Return True for a metric that gets smaller while a training succeeds: `loss`, `val_loss`, `train/loss`."""
    return _LOSS.search(name) is not None


def check_finite(name: str, last: float, not_finite: int, step: int | None) -> str:
    """Return what is wrong with a metric whose last values are not finite; empty: nothing is.

    Args:
        name: of the metric.
        last: its last value.
        not_finite: how many of its last values are not finite.
        step: of the last value.
    """
    return f"{name} is {last:g}{_describe_step(step)}" if not_finite >= _FEWEST_NOT_FINITE else ""


def check_loss(name: str, last: float, not_finite: int, step: int | None, history: Sequence[Mean]) -> Remark | None:
    """Return a remark about a loss that is not a number, or has grown tenfold.

    Args:
        name: of the metric.
        last: its last value.
        not_finite: how many of its last values are not finite.
        step: of the last value.
        history: all of its values, the oldest first.
    """
    if not is_loss(name):
        return None
    if not math.isfinite(last):
        text = check_finite(name, last, not_finite, step)
        return Remark(RemarkKind.NAN, text) if text else None
    means = [bucket.mean for bucket in history if bucket.mean is not None and bucket.minimum is not None]
    if len(means) < len(history) or len(history) < _FEWEST_BUCKETS:
        return None
    best = min(means[:-_LAST_BUCKETS])
    least = min(bucket.minimum for bucket in history[-_LAST_BUCKETS:] if bucket.minimum is not None)
    if best <= 0 or least < _GROWN * best or least < means[0] / 2:
        return None
    return Remark(RemarkKind.DIVERGED, f"{name} has grown from {best:.3g} to {last:.3g}{_describe_step(step)}")


def check_stalled(name: str, best: tuple[float, int], last_step: int, most: int) -> Remark | None:
    """Return a remark about a metric that has had no better value for many steps.

    Args:
        name: of the metric.
        best: its best value so far, and the first step that had it.
        last_step: of its last value.
        most: steps that it may take for a better value.
    """
    value, step = best
    if last_step - step < most:
        return None
    return Remark(RemarkKind.STALLED, f"{name} has no better value since step {step:,}, which had {value:.3g}")


def check_rate(marks: Sequence[tuple[float, float]], now: float, pause: float = 0.0) -> Remark | None:
    """Return a remark about a rate that has dropped to less than half of what it ever was over five minutes.

    Args:
        marks: seconds, and how much was done; both grow.
        now: seconds.
        pause: the most seconds without any move so far: one such pause is usual, and may be in the last five minutes.
    """
    begin = now - _RATE_SECONDS
    moving = _RATE_SECONDS - pause
    if moving < _LEAST_MOVING or len(marks) < _FEWEST_SAMPLES or marks[0][0] > begin - 2 * _RATE_SECONDS:
        return None
    before = [mark for mark in marks if mark[0] <= begin]
    rates = [
        (amount - _find_amount(before, at - _RATE_SECONDS)) / _RATE_SECONDS
        for at, amount in before
        if at - _RATE_SECONDS >= before[0][0]
    ]
    recent = (marks[-1][1] - _find_amount(marks, begin)) / moving
    if len(rates) < _LAST_BUCKETS or recent >= _DROPPED * min(rates):
        return None
    text = f"it does {format_rate(recent)}, and did {format_rate(min(rates))} at least"
    return Remark(RemarkKind.SLOWER, text, begin)


def check_memory(samples: Sequence[tuple[float, float]], limit: float) -> Remark | None:
    """Return a remark about memory that grows towards its limit.

    Args:
        samples: seconds and bytes in use, the oldest first, of the last `WINDOW`.
        limit: bytes.
    """
    if not _covers_window([at for at, _ in samples]) or samples[-1][1] < _LEAST_USED * limit:
        return None
    fit = _fit_line(samples)
    if fit is None or fit[1] < _LEAST_FIT or fit[0] <= 0:
        return None
    left = (limit - samples[-1][1]) / fit[0]
    if not 0 <= left <= _LONGEST_LEFT:
        return None
    return Remark(RemarkKind.MEMORY, f"its memory grows: out of memory in about {max(1, round(left / 60))} m")


def check_gpus(samples: Sequence[tuple[float, float]]) -> Remark | None:
    """Return a remark about GPUs that do nothing.

    Args:
        samples: seconds, and how busy the GPUs are in per cent, the oldest first, of the last `WINDOW`.
    """
    if not _covers_window([at for at, _ in samples]) or any(busy >= _IDLE_GPU for _, busy in samples):
        return None
    return Remark(RemarkKind.IDLE_GPU, f"its GPUs do nothing for {WINDOW / 60:.0f} m", samples[0][0])


def _describe_step(step: int | None) -> str:
    return "" if step is None else f" at step {step:,}"


def _covers_window(times: Sequence[float]) -> bool:
    return len(times) >= _FEWEST_SAMPLES and times[-1] - times[0] >= _COVERED * WINDOW


def _find_amount(marks: Sequence[tuple[float, float]], at: float) -> float:
    """Return how much was done at a moment, between two marks in a straight line."""
    before = next((mark for mark in reversed(marks) if mark[0] <= at), marks[0])
    after = next((mark for mark in marks if mark[0] > at), None)
    if after is None or after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (at - before[0]) / (after[0] - before[0])


def _fit_line(samples: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the slope of the line through samples, and the part of their variance that it explains; None: they are
    all equal."""
    count = len(samples)
    mean_at = sum(at for at, _ in samples) / count
    mean = sum(amount for _, amount in samples) / count
    spread_at = sum((at - mean_at) ** 2 for at, _ in samples)
    spread = sum((amount - mean) ** 2 for _, amount in samples)
    together = sum((at - mean_at) * (amount - mean) for at, amount in samples)
    if spread_at <= 0 or spread <= 0:
        return None
    return together / spread_at, together**2 / (spread_at * spread)
