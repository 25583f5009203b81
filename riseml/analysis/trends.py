"""What a live view remembers of the last minutes, from the samples that it has seen itself. No I/O, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING

from riseml.base.records import dataclass

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
        trends.list_amounts("4.worker.1", lambda sample: sample["cpu"])
    """

    now: float = 0.0  # seconds: when the last samples came
    # by job; seconds and sample
    _samples: dict[str, deque[tuple[float, wire.SampleView]]] = field(default_factory=dict)

    def add_samples(self, samples: Sequence[wire.SampleView], now: float) -> None:
        """Remember samples, and forget what is older than `MEMORY` and jobs that are no longer among them.

        A server that started again counts lines from 0: the past of such a job is forgotten.
        """
        self.now = now
        names = {sample["id"] for sample in samples}
        self._samples = {name: past for name, past in self._samples.items() if name in names}
        for sample in samples:
            past = self._samples.setdefault(sample["id"], deque())
            if past and (sample["lines"] or 0) < (past[-1][1]["lines"] or 0):
                past.clear()
            if past and (now <= past[-1][0] or _is_newest_close(past)):
                past.pop()
            past.append((now, sample))
            while past[0][0] < now - MEMORY:
                past.popleft()

    def list_amounts(self, job: str, amount: Amount, seconds: float = MEMORY) -> list[float | None]:
        """Return an amount over the last seconds, the newest last."""
        return [amount(sample) for _, sample in self._select(job, seconds)]

    def list_last(self, job: str, amount: Amount, seconds: float, fewest: int) -> list[float]:
        """Return the newest known values of an amount that span at least `seconds`, and at least `fewest` of them;
        nothing when `MEMORY` does not hold enough. The time between two samples depends on the view.
        """
        values: list[float] = []
        for at, sample in reversed(list(self._select(job, MEMORY))):
            value = amount(sample)
            if value is not None:
                values.append(value)
                if len(values) >= fewest and self.now - at >= seconds:
                    return values[::-1]
        return []

    def average(self, job: str, amount: Amount, seconds: float) -> float | None:
        """Return the mean of an amount over the last seconds; None when it is never known in them."""
        values = [value for value in self.list_amounts(job, amount, seconds) if value is not None]
        return sum(values) / len(values) if values else None

    def count_lines(self, job: str, seconds: float) -> tuple[int, float] | None:
        """Return how many lines came in the last seconds, and in how many seconds exactly; None: not known yet."""
        counts = [(at, sample["lines"]) for at, sample in self._select(job, seconds) if sample["lines"] is not None]
        if (
            len(counts) < 2
            or counts[0][1] is None
            or counts[-1][1] is None
            or counts[-1][0] - counts[0][0] < _LONGEST_SAME
        ):
            return None
        return counts[-1][1] - counts[0][1], counts[-1][0] - counts[0][0]

    def list_line_rates(self, job: str) -> list[float | None]:
        """Return the lines per second between each two samples, the newest last. Two close ones tell no rate."""
        past = [(at, sample["lines"]) for at, sample in self._select(job, MEMORY)]
        return [
            None if old is None or new is None else (new - old) / (end - begin)
            for (begin, old), (end, new) in pairwise(past)
            if end - begin >= _LONGEST_SAME
        ]

    def _select(self, job: str, seconds: float) -> Iterator[tuple[float, wire.SampleView]]:
        begin = self.now - seconds
        return ((at, sample) for at, sample in self._samples.get(job, ()) if at >= begin)


def _is_newest_close(past: Sequence[tuple[float, wire.SampleView]]) -> bool:
    """Return True when the newest sample is close to the one before: the next sample then takes its place."""
    return len(past) > 1 and past[-1][0] - past[-2][0] < _LONGEST_SAME
