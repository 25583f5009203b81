"""The metrics of all experiments: counted from their logs, and saved with the position up to which they are counted.

A save writes the counts and the position in one transaction. A server that is killed before a save loses nothing: the
next one continues from the saved position. The counts of experiments that are not complete stay in memory, and every
answer first counts the new part of the log. So an answer covers the whole log.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TypeVar

from riseml.base.errors import LogUnreadable
from riseml.base.faultpoints import Point, reach
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.store.database import Database
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.line_patterns import PatternSearch, find_reports
from riseml.store.metrics.metric_history import Bucket
from riseml.store.metrics.metric_rows import MetricRows, TallyRow
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary
from riseml.store.metrics.metric_tally import MetricReport, MetricTally, batch_reports, read_reports

T = TypeVar("T")

_BEGINNING = ReadPosition()
_SAVED_AT_ONCE = 200  # experiments that one transaction saves

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value of a metric."""

    step: int | None  # None: reported without a step
    value: float  # may be nan or infinite
    at: str  # RFC 3339 with fractions of a second
    job: JobName
    attempt: int  # attempt of the job


@dataclass(frozen=True, slots=True)
class ValuePage:
    """Values of a metric that follow each other."""

    values: tuple[MetricValue, ...]
    end: ReadPosition  # a reader that continues here loses and repeats nothing
    complete: bool  # the log holds nothing more now


@dataclass(slots=True)
class _Counting:
    """The counts of an experiment that is not complete."""

    experiment: int
    counted: ReadPosition = _BEGINNING
    tally: MetricTally = field(default_factory=MetricTally)
    saved: ReadPosition | None = None  # None: there is no row
    is_closed: bool = False  # nothing more comes
    is_complete: bool = False  # this was saved
    patterns: Mapping[str, str] = field(default_factory=dict)  # that find metrics in lines, without those that are slow
    slow: frozenset[str] = frozenset()  # names of patterns that took too long
    lock: threading.Lock = field(default_factory=threading.Lock)


def find_no_patterns(experiment: int) -> Mapping[str, str]:
    """Return no patterns: only reports count."""
    return {}


class MetricStore:
    """The metrics in one database and below one folder of logs. Safe from many threads.

    Example:
        >>> metrics = MetricStore(database, logs)
        >>> metrics.read_summaries([4])[4]["loss"].last
        0.31

    Args:
        database: holds what was counted.
        logs: hold the reports.
        find_patterns: returns the patterns that find metrics in the lines of an experiment, by name.
    """

    def __init__(
        self, database: Database, logs: LogStore, find_patterns: Callable[[int], Mapping[str, str]] = find_no_patterns
    ) -> None:
        self._rows = MetricRows(database)
        self._logs = logs
        self._find_patterns = find_patterns
        self._search = PatternSearch()
        self._guard = threading.Lock()
        self._open: dict[int, _Counting] = {}

    def recover(self) -> frozenset[int]:
        """Return the experiments with reports to count or counts to save; the server calls it before it writes logs.

        Raises:
            StoreError: the store cannot be read.
        """
        incomplete = self._rows.list_incomplete()
        rows = self._rows.load_tallies(incomplete)
        with self._guard:
            for experiment, row in rows.items():
                self._open[experiment] = self._restore_counting(row)
        for experiment, is_closed in incomplete.items():
            if is_closed:  # also without a log: the next save marks it complete, so that no later server finds it here
                self.note_closed(experiment)
        return frozenset(
            identity for identity, is_closed in incomplete.items() if is_closed or self._logs.log_size(identity)
        )

    def count_reports(self, experiment: int) -> bool:
        """Count the new part of an experiment's log. Return True when it contained a report."""
        counting = self._open_counting(experiment)
        with counting.lock:
            return self._count_on(counting)

    def note_closed(self, experiment: int) -> None:
        """Record that the log of an experiment is complete: the next save marks its counts complete."""
        self._open_counting(experiment).is_closed = True

    def peek_last_values(self, experiments: Collection[int]) -> dict[int, dict[str, float | None]]:
        """Return the last value of each metric, as far as it is counted, of those of these experiments that are not
        complete, in the order of the first reports; a value that is not finite is None.

        It reads no log and waits for no other thread: an experiment whose reports are counted just now is left out.
        """
        return self._peek(experiments, MetricTally.list_last_values)

    def peek_not_finite(self, experiments: Collection[int]) -> dict[int, list[MetricSummary]]:
        """Return the metrics whose last value is not finite, of the experiments that have any, as
        `peek_last_values` does.
        """
        return self._peek(experiments, MetricTally.list_not_finite)

    def _peek(self, experiments: Collection[int], read: Callable[[MetricTally], T]) -> dict[int, T]:
        """Return what a function reads from the counts of each experiment, unless it is empty."""
        with self._guard:
            countings = [self._open[identity] for identity in experiments if identity in self._open]
        values: dict[int, T] = {}
        for counting in countings:
            if not counting.lock.acquire(blocking=False):
                continue
            try:
                read_value = read(counting.tally)
            finally:
                counting.lock.release()
            if read_value:
                values[counting.experiment] = read_value
        return values

    def save(self) -> None:
        """Save the counts since the last save. An error with one experiment does not stop the others.

        Raises:
            StoreError: it cannot be written now; nothing is lost, and the next save writes it.
        """
        with self._guard:
            countings = list(self._open.values())
        saved: list[tuple[_Counting, TallyRow, dict[str, str]]] = []
        problems: list[Exception] = []
        for counting in countings:
            try:
                row = self._take_row(counting)
            except Exception as error:  # noqa: BLE001  # raised below
                problems.append(error)
            else:
                saved.extend([] if row is None else [(counting, *row)])
                if row is None and counting.is_complete:  # a reader opened it again while it was saved
                    self._drop(counting.experiment)
        self._write_rows(saved)
        if problems:
            raise problems[0]

    def _write_rows(self, saved: list[tuple[_Counting, TallyRow, dict[str, str]]]) -> None:
        while saved:
            some, saved = saved[:_SAVED_AT_ONCE], saved[_SAVED_AT_ONCE:]
            reach(Point.COUNTED)
            try:
                self._rows.save_tallies([(tally, histories) for _, tally, histories in some])
            except BaseException:
                for counting, _, histories in [*some, *saved]:
                    with counting.lock:
                        counting.tally.changed |= histories.keys()
                raise
            reach(Point.COUNTS_SAVED)
            for counting, tally, _ in some:
                counting.saved = tally.counted
                if tally.complete:
                    self._drop(counting.experiment)

    def close(self) -> None:
        """End the process that searches lines."""
        self._search.close()

    def read_tallies(self, experiments: Collection[int]) -> dict[int, TallyRow]:
        """Return what was counted of each of these experiments, up to the end of its log; of most in one query."""
        tallies = self._rows.load_tallies(experiments)
        for experiment in experiments:
            if experiment in tallies and tallies[experiment].complete:
                continue
            if experiment in tallies or self._logs.log_size(experiment):
                counting = self._open_counting(experiment)
                with counting.lock:
                    with suppress(LogUnreadable):  # the metric counter says so; one damaged file hides no other counts
                        self._count_on(counting)
                    tallies[experiment] = _show_row(counting)
        return tallies

    def read_summaries(self, experiments: Collection[int]) -> dict[int, dict[str, MetricSummary]]:
        """Return the metrics of each of these experiments that has any."""
        metrics = self._rows.load_complete(experiments)
        tallies = self.read_tallies([experiment for experiment in experiments if experiment not in metrics])
        metrics |= {experiment: dict(row.summaries) for experiment, row in tallies.items()}
        return {experiment: summaries for experiment, summaries in metrics.items() if summaries}

    def read_history(self, experiment: int, metric: str) -> tuple[Bucket, ...]:
        """Return the history of a metric, downsampled; empty when it has no value."""
        self.read_summaries([experiment])  # counts what is new
        counting = self._find_counting(experiment)
        if counting is None:
            return self._rows.load_history(experiment, metric).read_buckets()
        with counting.lock:
            count = counting.tally.find_count(metric)
            return () if count is None else count.history.read_buckets()

    def read_histories(self, experiments: Sequence[int], metric: str) -> dict[int, tuple[Bucket, ...]]:
        """Return the history of one metric of each of these experiments that has it, as `read_history` does."""
        self.read_tallies(experiments)  # counts what is new
        counted = {
            experiment: counting
            for experiment in experiments
            if (counting := self._find_counting(experiment)) is not None
        }
        saved = self._rows.load_histories_of(
            [experiment for experiment in experiments if experiment not in counted], metric
        )
        histories = {experiment: history.read_buckets() for experiment, history in saved.items()}
        for experiment, counting in counted.items():
            with counting.lock:
                count = counting.tally.find_count(metric)
                if count is not None:
                    histories[experiment] = count.history.read_buckets()
        return histories

    def read_values(self, experiment: int, metric: str, after: ReadPosition = _BEGINNING) -> ValuePage:
        """Return some values of a metric after a position of the log, in the order of the log; none is left out or
        repeated."""
        counting = self._find_counting(experiment)
        counting = self._load_counting(experiment) if counting is None else counting
        reports, end = self._read_reports(counting, after)
        values = [
            MetricValue(report.step, value, report.at, report.job, report.attempt)
            for report in reports
            for name, value in report.values
            if counting.tally.choose_name(name, is_tracked=report.is_tracked) == metric
        ]
        return ValuePage(tuple(values), end, complete=end == after)

    def _count_on(self, counting: _Counting) -> bool:
        """Count to the end of the log; the caller holds the lock."""
        has_counted = False
        while True:
            count = self._count_patterns if counting.patterns else self._count_blocks
            has_reports, end = count(counting)
            has_counted = has_counted or has_reports
            if end == counting.counted:
                return has_counted
            counting.counted = end

    def _count_blocks(self, counting: _Counting) -> tuple[bool, ReadPosition]:
        """Count the next reports. Return whether there were any, and where to continue."""
        blocks, end = self._logs.read_report_blocks(counting.experiment, counting.counted)
        has_reports = False
        for block in blocks:
            batch = batch_reports(block)
            if batch is not None:
                counting.tally.add_batch(batch)
                has_reports = True
                continue
            for report in read_reports([block]):
                counting.tally.add_report(report)
                has_reports = True
        return has_reports, end

    def _count_patterns(self, counting: _Counting) -> tuple[bool, ReadPosition]:
        """Count the next reports and the values that patterns find in lines, as `_count_blocks` does."""
        reports, end = self._read_reports(counting, counting.counted)
        for report in reports:
            counting.tally.add_report(report)
        return bool(reports), end

    def _read_reports(self, counting: _Counting, position: ReadPosition) -> tuple[list[MetricReport], ReadPosition]:
        if not counting.patterns:
            blocks, end = self._logs.read_report_blocks(counting.experiment, position)
            return list(read_reports(blocks)), end
        blocks, end = self._logs.read_blocks(counting.experiment, position, reports=True)
        reports, slow = find_reports(blocks, counting.patterns, self._search)
        if slow:
            log.warning("experiment %s: too slow: train.metrics.%s", counting.experiment, ", ".join(sorted(slow)))
            counting.slow |= slow
            counting.patterns = {name: pattern for name, pattern in counting.patterns.items() if name not in slow}
        return reports, end

    def _drop(self, experiment: int) -> None:
        with self._guard:
            self._open.pop(experiment, None)

    def _find_counting(self, experiment: int) -> _Counting | None:
        with self._guard:
            return self._open.get(experiment)

    def _open_counting(self, experiment: int) -> _Counting:
        """Return the counts of an experiment; they continue from the saved ones."""
        with self._guard:
            counting = self._open.get(experiment)
            if counting is None:
                counting = self._open[experiment] = self._load_counting(experiment)
            return counting

    def _load_counting(self, experiment: int) -> _Counting:
        row = self._rows.load_tallies([experiment]).get(experiment)
        return self._start_counting(experiment) if row is None else self._restore_counting(row)

    def _start_counting(self, experiment: int) -> _Counting:
        return _Counting(experiment, patterns=self._find_patterns(experiment))

    def _restore_counting(self, row: TallyRow) -> _Counting:
        """Return the saved counts. A log in which no record begins at the saved position has lost its end in a power
        cut, and is counted again from its beginning; so is a log whose history is missing.

        The saved counts are deleted first: when the log has grown again, their position would point at another record.
        """
        experiment = row.experiment
        histories = self._rows.load_histories(experiment)
        is_there = self._logs.is_record_start(experiment, row.counted.offset)
        if not is_there or not row.summaries.keys() <= histories.keys():
            self._rows.delete_tally(experiment)
            return self._start_counting(experiment)
        counts = [MetricCount.restore(summary, histories[name]) for name, summary in row.summaries.items()]
        tally = MetricTally(counts, row.dropped, row.tracked)
        patterns = {name: pattern for name, pattern in self._find_patterns(experiment).items() if name not in row.slow}
        end = row.counted
        return _Counting(experiment, end, tally, end, row.complete, row.complete, patterns, row.slow)

    def _take_row(self, counting: _Counting) -> tuple[TallyRow, dict[str, str]] | None:
        """Return the row of an experiment to save; None when nothing has changed since the last save."""
        with counting.lock:
            if counting.is_closed:
                self._count_on(counting)
            if counting.counted == counting.saved and counting.is_closed is counting.is_complete:
                return None
            tally = counting.tally
            counts = {name: tally.find_count(name) for name in sorted(tally.changed)}
            histories = {name: json.dumps(count.history.to_rows()) for name, count in counts.items() if count}
            tally.changed = set()
            return (_show_row(counting) if counting.is_closed else _to_row(counting)), histories


def _to_row(counting: _Counting) -> TallyRow:
    tally = counting.tally
    return TallyRow(
        counting.experiment,
        counting.counted,
        counting.is_closed,
        tally.summarize(),
        tally.dropped,
        counting.slow,
        frozenset(tally.tracked),
    )


def _show_row(counting: _Counting) -> TallyRow:
    """Return what users see of the counts: curves that agree are one."""
    row = _to_row(counting)
    hidden = counting.tally.list_hidden()
    if not hidden:
        return row
    return replace(row, summaries={name: summary for name, summary in row.summaries.items() if name not in hidden})
