"""Durations of passes, actions and waits, counted in buckets. Counts begin at 0 when the server starts."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0)
"""Seconds: the upper bounds of the buckets; one more has the rest."""


class DurationCounts:
    """Durations of one kind, in buckets. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        with self._lock:
            self._counts[bisect.bisect_left(BOUNDS, seconds)] += 1
            self._sum += max(0.0, seconds)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count the duration of a block, whether it succeeds or not."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.observe(time.monotonic() - begun)

    def read(self) -> tuple[list[int], float]:
        """Return how many durations are in each bucket, and their sum in seconds."""
        with self._lock:
            return list(self._counts), self._sum


class Timings:
    """The durations that the server counts."""

    def __init__(self) -> None:
        self.passes = DurationCounts()  # passes of the loop
        self.host_answers = DurationCounts()  # the part of a pass until all hosts have answered, or are silent
        self.queue_waits = DurationCounts()  # from the submission of an experiment to its place
        self._lock = threading.Lock()
        self._actions: dict[str, DurationCounts] = {}

    def find_actions(self, kind: str) -> DurationCounts:
        """Return the durations of one kind of action on hosts."""
        with self._lock:
            return self._actions.setdefault(kind, DurationCounts())

    def list_actions(self) -> Mapping[str, DurationCounts]:
        """Return the durations of actions, by kind."""
        with self._lock:
            return dict(self._actions)
