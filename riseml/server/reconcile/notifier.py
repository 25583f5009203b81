"""Notifications of changes: any thread notifies, readers of log streams subscribe.

A notification says only whether records changed, not just log lines; the reader fetches the data. The first
notification wakes a reader at once. Those that follow within 10 ms wake it once, so that a reader of a log that grows
without a pause fetches many lines at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOMENT = 0.01  # seconds


class Subscription:
    """Wakes one reader, who alone calls `take` and `wait`; anybody rings."""

    def __init__(self, experiments: tuple[int, ...]) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._records = set(experiments)
        self._pending = False
        self._last = 0.0

    def take_changed(self) -> frozenset[int]:
        """Before every look: the experiments of which more than lines may be new since the last one; first all."""
        self._event.clear()
        with self._lock:
            records, self._records = frozenset(self._records), set()
        return records

    async def wait_for_change(self, seconds: float) -> bool:
        """Return when there is news since `take`, or false after `seconds`."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def notify_reader(self, changed: int | None) -> None:
        """There is news; of the records of an experiment, if one is named. A reader that is about to be woken need
        not be told again.
        """
        with self._lock:
            if changed is not None:
                self._records.add(changed)
            if self._pending:
                return
            self._pending = True
        self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        wait = self._last + _MOMENT - self._loop.time()
        if wait > 0:
            self._loop.call_later(wait, self._wake)
        else:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            self._pending = False
        self._last = self._loop.time()
        self._event.set()


class Notifier:
    """Subscriptions by experiment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, set[Subscription]] = {}

    def publish_records(self, experiment: int) -> None:
        """The records of this experiment have changed."""
        self._ring(experiment, experiment)

    def publish_lines(self, experiment: int) -> None:
        """Its log has grown."""
        self._ring(experiment, None)

    @contextmanager
    def subscribe(self, experiments: tuple[int, ...]) -> Iterator[Subscription]:
        """A bell that rings whenever something of these experiments is new."""
        bell = Subscription(experiments)
        with self._lock:
            for experiment in experiments:
                self._waiting.setdefault(experiment, set()).add(bell)
        try:
            yield bell
        finally:
            with self._lock:
                for experiment in experiments:
                    self._waiting[experiment].discard(bell)
                    if not self._waiting[experiment]:
                        del self._waiting[experiment]

    def _ring(self, experiment: int, changed: int | None) -> None:
        with self._lock:
            bells = list(self._waiting.get(experiment, ()))
        for bell in bells:
            bell.notify_reader(changed)
