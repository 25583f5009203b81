"""What a live view remembers of the last minutes, from the samples that it has seen itself. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING

from riseml.records import dataclass

if TYPE_CHECKING:
    from riseml import wire

MEMORY = 300.0  # seconds that are remembered
_LONGEST_SAME = 1.0  # seconds; only the newest sample is closer to the one before

Amount = Callable[["wire.SampleView"], float | None]
"""Takes one amount from a sample; None: unknown."""


@dataclass(slots=True)
class Trends:
    """The samples of all jobs in the last minutes, by job.

    Example:
        trends.add_samples(client.get_samples(None)["samples"], clock())
        trends.list_amounts("4.worker.1", lambda one: one["cpu"])
    """

    now: float = 0.0  # seconds: when the last samples came
    _seen: dict[str, deque[tuple[float, wire.SampleView]]] = field(default_factory=dict)  # by job; seconds and sample

    def add_samples(self, samples: Sequence[wire.SampleView], now: float) -> None:
        """Remember samples, and forget what is older than `MEMORY` and jobs that are no longer among them.

        A server that started again counts lines from 0: the past of such a job is forgotten.
        """
        self.now = now
        names = {one["id"] for one in samples}
        self._seen = {name: past for name, past in self._seen.items() if name in names}
        for one in samples:
            past = self._seen.setdefault(one["id"], deque())
            if past and (one["lines"] or 0) < (past[-1][1]["lines"] or 0):
                past.clear()
            if past and (now <= past[-1][0] or _is_newest_close(past)):
                past.pop()
            past.append((now, one))
            while past[0][0] < now - MEMORY:
                past.popleft()

    def list_amounts(self, job: str, amount: Amount, seconds: float = MEMORY) -> list[float | None]:
        """Return an amount over the last seconds, the newest last."""
        return [amount(one) for _, one in self._select(job, seconds)]

    def list_last(self, job: str, amount: Amount, seconds: float, fewest: int) -> list[float]:
        """Return the newest known values of an amount that span at least `seconds`, and at least `fewest` of them;
        nothing when `MEMORY` does not hold enough. The time between two samples depends on the view.
        """
        found: list[float] = []
        for at, one in reversed(list(self._select(job, MEMORY))):
            value = amount(one)
            if value is not None:
                found.append(value)
                if len(found) >= fewest and self.now - at >= seconds:
                    return found[::-1]
        return []

    def average(self, job: str, amount: Amount, seconds: float) -> float | None:
        """Return the mean of an amount over the last seconds; None when it is never known in them."""
        known = [value for value in self.list_amounts(job, amount, seconds) if value is not None]
        return sum(known) / len(known) if known else None

    def count_lines(self, job: str, seconds: float) -> tuple[int, float] | None:
        """Return how many lines came in the last seconds, and in how many seconds exactly; None: not known yet."""
        found = [(at, one["lines"]) for at, one in self._select(job, seconds) if one["lines"] is not None]
        if len(found) < 2 or found[0][1] is None or found[-1][1] is None or found[-1][0] - found[0][0] < _LONGEST_SAME:
            return None
        return found[-1][1] - found[0][1], found[-1][0] - found[0][0]

    def list_line_rates(self, job: str) -> list[float | None]:
        """Return the lines per second between each two samples, the newest last. Two close ones tell no rate."""
        past = [(at, one["lines"]) for at, one in self._select(job, MEMORY)]
        return [
            None if old is None or new is None else (new - old) / (end - begin)
            for (begin, old), (end, new) in pairwise(past)
            if end - begin >= _LONGEST_SAME
        ]

    def _select(self, job: str, seconds: float) -> Iterator[tuple[float, wire.SampleView]]:
        begin = self.now - seconds
        return ((at, one) for at, one in self._seen.get(job, ()) if at >= begin)


def _is_newest_close(past: Sequence[tuple[float, wire.SampleView]]) -> bool:
    """Return True when the newest sample is close to the one before: the next sample then takes its place."""
    return len(past) > 1 and past[-1][0] - past[-2][0] < _LONGEST_SAME
