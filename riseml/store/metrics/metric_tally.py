"""The metrics of one experiment, counted from the reports of its log. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from riseml.base.metric_names import LONGEST, read_quoted_name
from riseml.base.names import BUILD, JobName
from riseml.job_programs.reports import AT_METRIC, DONE_METRIC, OF_METRIC
from riseml.job_programs.script_shell import SHELL_METRIC
from riseml.store.logs.blocks import LogBlock
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary

MOST_METRICS = 100
"""Most metric names of one experiment; values of further names are counted but not kept."""

_NO_METRICS = frozenset(name.encode() for name in (SHELL_METRIC, DONE_METRIC, OF_METRIC))  # reports of riseml itself
_AT = AT_METRIC.encode()  # in a report of values that the training has noted elsewhere: when
_LATEST = 253402300800  # seconds since 1970; the end of the year 9999
_TRACKED = " (tensorboard)"  # behind the name of a metric that the training reports by `riseml.report`, too
_REPORTED = " (report)"
_SECOND_SOURCES = (" (tensorboard)", " (mlflow)", " (wandb)")  # behind names that two trackers of a job have
_PAIR = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*)" *: *([^ ,}]+)')


class MetricReport(NamedTuple):
    """One report of a job. A tuple, because there are ten thousand a second."""

    job: JobName
    attempt: int  # attempt of the job
    at: str  # RFC 3339 with fractions of a second
    step: int | None  # None: reported without a step
    values: tuple[tuple[str, float], ...]
    is_tracked: bool = False  # read where the training has noted the values: in files of TensorBoard


class ReportBatch(NamedTuple):
    """Successive reports of one job with the same names, as columns."""

    attempt: int  # attempt of the job
    stamps: Sequence[bytes]  # RFC 3339 with fractions of a second, of each report
    steps: Sequence[int] | None  # steps of each report; None: they were reported without
    columns: Mapping[str, Sequence[float]]  # the values of each name, one for each report
    is_tracked: bool = False  # as in `MetricReport`


class MetricTally:
    """Takes the reports of one experiment in the order of its log.

    A training may report a metric, and write it into files of TensorBoard under the same name. The name belongs to the
    source of its first value; the values of the other one have a name of their own, which is hidden while the two
    curves agree.
    """

    def __init__(self, counts: Iterable[MetricCount] = (), dropped: int = 0, tracked: Iterable[str] = ()) -> None:
        self.dropped = dropped  # values that were not kept, because there were too many names
        self.tracked = set(tracked)  # names whose first value was tracked
        self.changed: set[str] = set()  # metrics with values since the caller cleared this
        self._counts = {count.name: count for count in counts}

    def add_report(self, report: MetricReport) -> None:
        """Take the next report."""
        for plain_name, value in report.values:
            name = self.choose_name(plain_name, is_tracked=report.is_tracked)
            count = self._counts.get(name) or self._open_count(name, is_tracked=report.is_tracked)
            if count is None:
                self.dropped += 1
                continue
            count.add(value, report.step, report.at, report.attempt)
            self.changed.add(name)

    def add_batch(self, batch: ReportBatch) -> None:
        """Take the next reports; the same as `add_report` for each of them, in a fraction of the time."""
        for plain_name, values in batch.columns.items():
            name = self.choose_name(plain_name, is_tracked=batch.is_tracked)
            count = self._counts.get(name) or self._open_count(name, is_tracked=batch.is_tracked)
            if count is None:
                self.dropped += len(values)
                continue
            count.add_many(values, batch.steps, batch.stamps, batch.attempt)
            self.changed.add(name)

    def choose_name(self, name: str, *, is_tracked: bool) -> str:
        """Return the name of a metric for a value of one source."""
        if is_tracked is (name in self.tracked) or name not in self._counts:
            return name
        suffix = _TRACKED if is_tracked else _REPORTED
        return name[: LONGEST - len(suffix)] + suffix

    def _open_count(self, name: str, *, is_tracked: bool) -> MetricCount | None:
        """Return a count for a new name; None for one too many."""
        if len(self._counts) >= MOST_METRICS:
            return None
        if is_tracked:
            self.tracked.add(name)
        count = self._counts[name] = MetricCount(name)
        return count

    def list_hidden(self) -> frozenset[str]:
        """Return the names of curves that agree with the curve of another source."""
        if not self.tracked:
            return frozenset()
        second = {
            other: count
            for name, count in self._counts.items()
            if (other := self.choose_name(name, is_tracked=name not in self.tracked)) in self._counts
        }
        for name in self.tracked & self._counts.keys():
            plain_name = next((name.removesuffix(end) for end in _SECOND_SOURCES if name.endswith(end)), name)
            if plain_name != name and plain_name in self._counts:
                second[name] = self._counts[plain_name]
        return frozenset(
            name for name, count in second.items() if self._counts[name].history.agrees_with(count.history)
        )

    def list_last_values(self) -> dict[str, float | None]:
        """Return the last value of each metric, in the order of the first reports; None is one that is not finite."""
        hidden = self.list_hidden()
        last = {name: count.read_last() for name, count in self._counts.items() if name not in hidden}
        return {name: value if math.isfinite(value) else None for name, value in last.items()}

    def list_not_finite(self) -> list[MetricSummary]:
        """Return what is known of the metrics whose last value is not finite."""
        counts = [count for count in self._counts.values() if not math.isfinite(count.read_last())]
        return [count.summarize() for count in counts]

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
    moments = columns.pop(_AT, None)
    if moments is not None:
        stamps = tuple(map(_choose_stamp, moments, stamps))
    return ReportBatch(
        block.attempt,
        stamps,
        None if steps is None else list(map(int, steps)),
        {read_quoted_name(name) or "": list(map(float, values)) for name, values in columns.items()},
        is_tracked=moments is not None,
    )


def _choose_stamp(moment: bytes, stamp: bytes) -> bytes:
    """Return the time at which a training has noted values, as the log writes times.

    Args:
        moment: seconds since 1970.
        stamp: the time of the report, for a moment that is none.
    """
    seconds = float(moment)
    if not 0 <= seconds < _LATEST:
        return stamp
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()


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
            is_tracked = False
            for name, value in _PAIR.findall(text):
                if name == b"step":
                    step = int(value)
                elif name == _AT:
                    is_tracked = True
                    at = _choose_stamp(value, at)
                elif name not in _NO_METRICS and (plain_name := read_quoted_name(name)):
                    values.append((plain_name, float(value)))
            yield MetricReport(job, attempt, at.decode(), step, tuple(values), is_tracked)
