"""The counter of metrics: one thread counts the reports in logs that have grown, and saves the counts at intervals."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from riseml.base.errors import RisemlError
from riseml.store.metrics.metric_store import MetricStore

_GATHER = 0.2  # seconds for which reports are gathered, so that they are counted together
_SAVE_INTERVAL = 5.0  # seconds between two saves; after a kill the next server counts newer reports again
_LAST_SAVE = 5.0  # seconds that the thread gets to end

log = logging.getLogger(__name__)


def ignore_reports(experiments: frozenset[int]) -> None:
    """Take the experiments that have new reports, and do nothing."""


class MetricCounter(threading.Thread):
    """Counts reports while the server runs.

    Args:
        metrics: counts and saves.
        on_reports: called in the counter's thread with the experiments that have new reports, at most five times a
        second.
    """

    def __init__(self, metrics: MetricStore, on_reports: Callable[[frozenset[int]], None] = ignore_reports) -> None:
        super().__init__(name="metrics", daemon=True)
        self._metrics = metrics
        self._on_reports = on_reports
        self._on_counted: Callable[[frozenset[int]], None] = ignore_reports
        self._lock = threading.Lock()
        self._grown: set[int] = set()
        self._closed: set[int] = set()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._save_at: float | None = None  # on the monotonic clock; None: everything is saved
        self._has_failed = False  # whether the last try failed, so that a failure is logged once

    def call_when_counted(self, listener: Callable[[frozenset[int]], None]) -> None:
        """Register a listener for the experiments whose logs were counted, also if a reader has counted them.

        Args:
            listener: called in the counter's thread, at most five times a second.
        """
        self._on_counted = listener

    def recover(self) -> None:
        """Schedule the reports that an earlier server has not counted; the server calls this before it writes logs.

        Raises:
            StoreError: the store cannot be read.
        """
        for experiment in self._metrics.recover():
            self.note_growth(experiment)

    def note_growth(self, experiment: int) -> None:
        """Note that the log of an experiment has grown. Any thread may call it."""
        with self._lock:
            self._grown.add(experiment)
        self._news.set()

    def note_closed(self, experiment: int) -> None:
        """Record that the log of an experiment is complete. Any thread may call it."""
        with self._lock:
            self._closed.add(experiment)
        self._news.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._news.wait(None if self._save_at is None else max(0.0, self._save_at - time.monotonic()))
            self._stopping.wait(_GATHER)
            self._try_keep()

    def stop(self) -> None:
        """End the thread, and save what is counted."""
        self._stopping.set()
        self._news.set()
        if self.is_alive():
            self.join(timeout=_LAST_SAVE)
        self._save_at = 0.0
        self._try_keep()
        self._metrics.close()

    def _try_keep(self) -> None:
        """Count new reports, and save counts that are due. No error ends the thread: the next turn tries again."""
        try:
            problem = self._count_news()
            if self._save_at is not None and time.monotonic() >= self._save_at:
                self._save_at = time.monotonic() + _SAVE_INTERVAL
                self._metrics.save()
                self._save_at = None if problem is None else self._save_at
            if problem is not None:
                raise problem
            self._has_failed = False
        except (RisemlError, OSError) as error:
            if not self._has_failed:
                log.warning("metrics are counted or saved later: %s", error)
            self._has_failed = True
        except Exception:
            log.exception("metrics are counted or saved later")

    def _count_news(self) -> Exception | None:
        """Count the reports of experiments whose logs have grown, or that were closed.

        Returns:
            The last error. The experiment that caused it is tried again in the next turn; the others are counted.
        """
        with self._lock:
            grown = self._grown
            closed = self._closed
            self._grown = set()
            self._closed = set()
            self._news.clear()
        if (grown or closed) and self._save_at is None:
            self._save_at = time.monotonic() + _SAVE_INTERVAL
        reporting = set()
        counted = set()
        problem: Exception | None = None
        while grown or closed:
            experiment = min(grown | closed)
            try:
                if self._metrics.count_reports(experiment):
                    reporting.add(experiment)
                if experiment in closed:
                    self._metrics.note_closed(experiment)
                counted.add(experiment)
            except Exception as error:  # noqa: BLE001  # the caller raises it
                problem = error
                with self._lock:
                    self._grown |= grown & {experiment}
                    self._closed |= closed & {experiment}
            grown.discard(experiment)
            closed.discard(experiment)
        try:
            if reporting:
                self._on_reports(frozenset(reporting))
            if counted:
                self._on_counted(frozenset(counted))
        except Exception as error:  # noqa: BLE001  # the caller raises it after it has saved
            problem = error
        return problem
