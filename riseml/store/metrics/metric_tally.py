"""The metrics of one experiment, counted from the reports of its log. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from riseml.base.metric_names import read_quoted_name
from riseml.base.names import BUILD, JobName
from riseml.job_programs.reports import DONE_METRIC, OF_METRIC
from riseml.job_programs.script_shell import SHELL_METRIC
from riseml.store.logs.blocks import LogBlock
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary

MOST_METRICS = 100
"""Most metric names of one experiment; values of further names are counted but not kept."""

_NO_METRICS = frozenset(name.encode() for name in (SHELL_METRIC, DONE_METRIC, OF_METRIC))  # reports of riseml itself
_PAIR = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*)" *: *([^ ,}]+)')


class MetricReport(NamedTuple):
    """One report of a job. A tuple, because there are ten thousand a second."""

    job: JobName
    attempt: int  # attempt of the job
    at: str  # RFC 3339 with fractions of a second
    step: int | None  # None: reported without a step
    values: tuple[tuple[str, float], ...]


class ReportBatch(NamedTuple):
    """Successive reports of one job with the same names, as columns."""

    attempt: int  # attempt of the job
    stamps: Sequence[bytes]  # RFC 3339 with fractions of a second, of each report
    steps: Sequence[int] | None  # steps of each report; None: they were reported without
    columns: Mapping[str, Sequence[float]]  # the values of each name, one for each report


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

    def add_batch(self, batch: ReportBatch) -> None:
        """Take the next reports; the same as `add_report` for each of them, in a fraction of the time."""
        for name, values in batch.columns.items():
            count = self._counts.get(name)
            if count is None:
                if len(self._counts) >= MOST_METRICS:
                    self.dropped += len(values)
                    continue
                count = self._counts[name] = MetricCount(name)
            count.add_many(values, batch.steps, batch.stamps, batch.attempt)
            self.changed.add(name)

    def list_last_values(self) -> dict[str, float | None]:
        """Return the last value of each metric, in the order of the first reports; None is one that is not finite."""
        last = {name: count.read_last() for name, count in self._counts.items()}
        return {name: value if math.isfinite(value) else None for name, value in last.items()}

    def find_count(self, name: str) -> MetricCount | None:
        """Return the count of a metric; None when it has no value."""
        return self._counts.get(name)

    def summarize(self) -> dict[str, MetricSummary]:
        """Return what is known of each metric, in the order of their first values."""
        return {name: count.summarize() for name, count in self._counts.items()}


def batch_reports(block: LogBlock) -> ReportBatch | None:
    """Return the reports of a block as columns; None where they do not all have the same names."""
    if not block.is_report or block.job == BUILD:
        return None
    names = tuple(name for name, _ in _PAIR.findall(block.data, 0, block.data.index(b"\n")))
    if len({read_quoted_name(name) for name in names}) < len(names):
        return None
    rows = _make_row_pattern(names).findall(block.data)
    if len(rows) != block.count:
        return None
    stamps, *texts = zip(*rows, strict=True)
    columns = dict(zip(names, texts, strict=True))
    steps = columns.pop(b"step", None)
    for name in _NO_METRICS & columns.keys():
        del columns[name]
    return ReportBatch(
        block.attempt,
        stamps,
        None if steps is None else list(map(int, steps)),
        {read_quoted_name(name) or "": list(map(float, values)) for name, values in columns.items()},
    )


@lru_cache(maxsize=64)
def _make_row_pattern(names: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Return the pattern of a report with these names, in this order; each number is a group."""
    pairs = rb" *, *".join(rb'"' + re.escape(name) + rb'" *: *([^ ,}\n]++)' for name in names)
    return re.compile(rb"([^ \n]++) [^{\n]*+\{ *" + pairs + rb" *\}\r?\n")


def read_reports(blocks: Iterable[LogBlock]) -> Iterator[MetricReport]:
    """Give the reports of blocks; the build of an environment has none."""
    for block in blocks:
        if block.job == BUILD:
            continue
        job = block.job
        attempt = block.attempt
        for row in block.report_rows():
            at, _, text = row.partition(b" ")
            step: int | None = None
            values: list[tuple[str, float]] = []
            for name, value in _PAIR.findall(text):
                if name == b"step":
                    step = int(value)
                elif name not in _NO_METRICS and (plain_name := read_quoted_name(name)):
                    values.append((plain_name, float(value)))
            yield MetricReport(job, attempt, at.decode(), step, tuple(values))
