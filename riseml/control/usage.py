"""What users have used of the pool: from the times at which their experiments had places. Pure.

One GPU for an hour is one hour. A job without GPUs counts with its cores: eight cores for an hour are one hour, which
is what pools have for each GPU. Memory does not count. An hour counts half after the half-life, a quarter after twice
that time, and so on: the hours of the last days decide, and no user is behind for good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from riseml.base.records import dataclass
from riseml.control.quotas import HeldAmounts, holds_place, measure_plan
from riseml.model import Experiment

CORES_PER_GPU = 8
"""Cores that count as one GPU, of an experiment without GPUs."""

MOST_HALF_LIVES = 20
"""Half-lives after which an hour counts no more: less than a millionth of it is left."""

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class PlaceSpan:
    """One time for which an experiment had a place."""

    begun_at: datetime
    ended_at: datetime | None  # None: it has the place now
    gpus: int
    cpus: float  # cores

    @property
    def rate(self) -> float:
        """The hours that one hour of it counts."""
        return rate_amounts(HeldAmounts(self.gpus, self.cpus))


def rate_amounts(in_use: HeldAmounts) -> float:
    """Return how many hours one hour with these amounts counts."""
    return float(in_use.gpus) if in_use.gpus else in_use.cpus / CORES_PER_GPU


def count_decayed_hours(span: PlaceSpan, now: datetime, half_life: float) -> float:
    """Return the hours of a span that still count: each moment of it by its own age.

    Args:
        span: the time with a place.
        now: the time.
        half_life: seconds after which an hour counts half.
    """
    begun = max(0.0, (now - span.begun_at).total_seconds())  # seconds ago
    ended = 0.0 if span.ended_at is None else max(0.0, (now - span.ended_at).total_seconds())
    if begun <= ended:
        return 0.0
    mean_life = half_life / math.log(2)
    return span.rate * mean_life * (math.exp(-ended / mean_life) - math.exp(-begun / mean_life)) / _HOUR


def find_place_end(before: Experiment, after: Experiment, now: datetime) -> datetime | None:
    """Return when an experiment gave its place back with a decision; None: it had none, or has it still.

    The time is that of its last job, not that at which the server noticed: a server that was away counts no hours.
    """
    if before.placed_at is None or not holds_place(before):
        return None
    if holds_place(after) and after.placed_at == before.placed_at:
        return None
    ended = after.ended_at
    if ended is None and after.waits_since != before.waits_since:
        ended = after.waits_since
    return max(before.placed_at, min(ended or now, now))


class UsageTally:
    """The hours of each user that still count. The hours of places that have ended are added up once.

    All hours decay alike, so that a sum needs no list of what is in it.

    Args:
        half_life: seconds after which an hour counts half.
        now: the time at which it begins.
        spans: a user and a time with a place that has ended, for each that still counts.
    """

    def __init__(self, half_life: float, now: datetime, spans: Iterable[tuple[str, PlaceSpan]] = ()) -> None:
        self._half_life = half_life
        self._at = now
        self._hours: dict[str, float] = {}
        for user, span in spans:
            self.add(user, span)

    def add(self, user: str, span: PlaceSpan) -> None:
        """Count a place that has ended."""
        self._hours[user] = self._hours.get(user, 0.0) + count_decayed_hours(span, self._at, self._half_life)

    def move_to(self, now: datetime) -> None:
        """Let the hours decay until a time; a clock that was set back changes nothing."""
        seconds = (now - self._at).total_seconds()
        if seconds > 0:
            left = 0.5 ** (seconds / self._half_life)
            self._hours = {user: hours * left for user, hours in self._hours.items()}
            self._at = now

    def count(self, experiments: Iterable[Experiment], now: datetime) -> dict[str, float]:
        """Return the hours of each user, with those of the experiments that have places now."""
        self.move_to(now)
        hours = dict(self._hours)
        for experiment in experiments:
            if experiment.placed_at is not None and holds_place(experiment):
                need = measure_plan(experiment.plan)
                span = PlaceSpan(experiment.placed_at, None, need.gpus, need.cpus)
                user = experiment.owner.user
                hours[user] = hours.get(user, 0.0) + count_decayed_hours(span, now, self._half_life)
        return hours


def find_oldest_counted(now: datetime, half_life: float) -> datetime:
    """Return the time before which an hour counts no more."""
    return now - timedelta(seconds=min(MOST_HALF_LIVES * half_life, 100 * 365 * 86400.0))
