"""The metrics of one experiment, counted from the reports of its log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from riseml.names import BUILD, JobName
from riseml.store.logs.blocks import LogBlock
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary

MOST_METRICS = 100
"""Different names of one experiment; values of further ones are counted and not kept."""

_PAIR = re.compile(rb'"([^"]+)" *: *([^ ,}]+)')


class MetricReport(NamedTuple):
    """What one job reported at once. A tuple, because there are ten thousand a second."""

    job: JobName
    attempt: int  # of the job
    at: str  # RFC 3339 with fractions of a second
    step: int | None  # None: reported without a step
    values: tuple[tuple[str, float], ...]


class MetricTally:
    """Takes the reports of one experiment in the order of its log."""

    def __init__(self, counts: Iterable[MetricCount] = (), dropped: int = 0) -> None:
        self.dropped = dropped  # values that were not kept, because there were too many names
        self.changed: set[str] = set()  # metrics with values since the caller cleared this
        self._counts = {count.name: count for count in counts}

    def add_report(self, report: MetricReport) -> None:
        """Take the next report."""
        for name, value in report.values:
            count = self._counts.get(name)
            if count is None:
                if len(self._counts) >= MOST_METRICS:
                    self.dropped += 1
                    continue
                count = self._counts[name] = MetricCount(name)
            count.add(value, report.step, report.at, report.attempt)
            self.changed.add(name)

    def find_count(self, name: str) -> MetricCount | None:
        """Return the count of a metric; None when it has no value."""
        return self._counts.get(name)

    def summarize(self) -> dict[str, MetricSummary]:
        """Return what is known of each metric, in the order of their first values."""
        return {name: count.summarize() for name, count in self._counts.items()}


def read_reports(blocks: Iterable[LogBlock]) -> Iterator[MetricReport]:
    """Give the reports of blocks; the build of an environment has none."""
    for block in blocks:
        if block.job == BUILD:
            continue
        job, attempt = block.job, block.attempt
        for row in block.report_rows():
            at, _, text = row.partition(b" ")
            step: int | None = None
            values: list[tuple[str, float]] = []
            for name, value in _PAIR.findall(text):
                if name == b"step":
                    step = int(value)
                else:
                    values.append((name.decode(), float(value)))
            yield MetricReport(job, attempt, at.decode(), step, tuple(values))
