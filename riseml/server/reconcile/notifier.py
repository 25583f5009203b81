"""Notifications of changes: any thread notifies, readers of log streams and of the feed of all changes subscribe.

A notification only says whether records changed or just the log has grown; the reader fetches the data. The first
notification wakes a reader at once. Further ones within 10 ms wake it once, so that a reader of a log that grows
without a pause fetches many lines at a time. Readers of many experiments choose a longer time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_LEAST_INTERVAL = 0.01  # seconds between two wakes of one reader, as long as that chooses no other


class Subscription:
    """Wakes one reader, the only caller of `take_changed` and `wait_for_change`. Any thread may notify it.

    Attributes:
        experiments: keys of those whose changes wake the reader; only the notifier changes it.
        least_interval: seconds between two wakes of the reader, which may change it.

    Example:
        >>> with notifier.subscribe((4,)) as subscription:
        ...     while await subscription.wait_for_change(15.0):
        ...         changed = subscription.take_changed()  # then read what is new
    """

    def __init__(self, experiments: tuple[int, ...]) -> None:
        self.experiments = set(experiments)
        self.least_interval = _LEAST_INTERVAL
        self._event = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._changed = set(experiments)  # experiments whose records may have changed since `take_changed`
        self._pending = False  # a wake is scheduled
        self._last_wake = 0.0  # on the clock of the event loop

    def take_changed(self) -> frozenset[int]:
        """Return the experiments whose records may have changed since the last call; the first call returns all.

        Call it before reading: a change that comes while the reader reads is in the next call.
        """
        self._event.clear()
        with self._lock:
            changed, self._changed = frozenset(self._changed), set()
        return changed

    async def wait_for_change(self, seconds: float) -> bool:
        """Wait for a notification since `take_changed`; return False when none came for `seconds`."""
        try:
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 makes a task for each call
                await self._event.wait()
        except TimeoutError:
            return False
        return True

    def notify_reader(self, changed: int | None) -> None:
        """Wake the reader, unless a wake is scheduled already.

        Args:
            changed: the experiment whose records changed; None when only its log has grown.
        """
        if self.note_change(changed):
            self.loop.call_soon_threadsafe(self.schedule_wake)

    def note_change(self, changed: int | None) -> bool:
        """Note a notification. Return True when the caller must schedule a wake in the event loop of the reader."""
        with self._lock:
            if changed is not None:
                self._changed.add(changed)
            if self._pending:
                return False
            self._pending = True
            return True

    def schedule_wake(self) -> None:
        """Wake the reader as soon as it may be woken; only its event loop calls this."""
        wait = self._last_wake + self.least_interval - self.loop.time()
        if wait > 0:
            self.loop.call_later(wait, self._wake)
        else:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            self._pending = False
        self._last_wake = self.loop.time()
        self._event.set()


class FeedSubscription(Subscription):
    """Wakes one reader of the feed of all experiments."""

    def __init__(self) -> None:
        super().__init__(())
        self._grown: set[int] = set()  # experiments whose logs have grown since `take_grown`

    def take_grown(self) -> frozenset[int]:
        """Return the experiments whose logs have grown since the last call; call it after `take_changed`."""
        with self._lock:
            grown, self._grown = frozenset(self._grown), set()
        return grown

    def notify_feed(self, experiment: int, changed: int | None) -> None:
        """Wake the reader, as `notify_reader` does, and note which log has grown."""
        if changed is None:
            with self._lock:
                self._grown.add(experiment)
        self.notify_reader(changed)


def ignore_growth(experiment: int) -> None:
    """Take an experiment whose log has grown, and do nothing."""


class Notifier:
    """The subscriptions of all readers, by experiment. Any thread may publish.

    Args:
        note_growth: called with an experiment whose log has grown, in the publishing thread.
    """

    def __init__(self, note_growth: Callable[[int], None] = ignore_growth) -> None:
        self._note_growth = note_growth
        self._lock = threading.Lock()
        self._subscriptions: dict[int, set[Subscription]] = {}
        self._feeds: tuple[FeedSubscription, ...] = ()
        self._count = 0  # number of notifications
        self._changed: dict[int, int] = {}  # experiment -> the last notification of its records
        self._grown: dict[int, int] = {}  # experiment -> the last notification of its log

    def publish_records(self, experiment: int) -> None:
        """Notify the readers of an experiment that its records have changed."""
        self._notify_readers(experiment, experiment)

    def publish_lines(self, experiment: int) -> None:
        """Notify the readers of an experiment that its log has grown."""
        self._note_growth(experiment)
        self._notify_readers(experiment, None)

    @contextmanager
    def subscribe(self, experiments: tuple[int, ...]) -> Iterator[Subscription]:
        """Subscribe to these experiments; call it in the event loop of the reader."""
        subscription = Subscription(experiments)
        with self._lock:
            for experiment in experiments:
                self._subscriptions.setdefault(experiment, set()).add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                for experiment in subscription.experiments:
                    self._subscriptions[experiment].discard(subscription)
                    if not self._subscriptions[experiment]:
                        del self._subscriptions[experiment]

    @contextmanager
    def subscribe_to_all(self) -> Iterator[FeedSubscription]:
        """Subscribe to every experiment, those of the future included; call it in the event loop of the reader."""
        subscription = FeedSubscription()
        with self._lock:
            self._feeds += (subscription,)
        try:
            yield subscription
        finally:
            with self._lock:
                self._feeds = tuple(feed for feed in self._feeds if feed is not subscription)

    def count_notifications(self) -> int:
        """Return how many notifications there were; every feed has noted them."""
        with self._lock:
            return self._count

    def list_since(self, count: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the experiments whose records may have changed, and those whose logs have grown, since a count."""
        with self._lock:
            changed, grown = (
                frozenset(experiment for experiment, at in counts.items() if at > count)
                for counts in (self._changed, self._grown)
            )
        return changed, grown

    def count_feeds(self) -> int:
        """Return how many readers follow all experiments."""
        return len(self._feeds)

    def extend(self, subscription: Subscription, experiments: Iterable[int]) -> None:
        """Add experiments to a subscription: those that a search has made since."""
        with self._lock:
            for experiment in experiments:
                subscription.experiments.add(experiment)
                self._subscriptions.setdefault(experiment, set()).add(subscription)

    def _notify_readers(self, experiment: int, changed: int | None) -> None:
        with self._lock:
            subscriptions = list(self._subscriptions.get(experiment, ()))
            self._count += 1
            (self._grown if changed is None else self._changed)[experiment] = self._count
            for feed in self._feeds:  # under the lock: a count that a reader gets has nothing that a feed has not noted
                feed.notify_feed(experiment, changed)
        sleeping: dict[asyncio.AbstractEventLoop, list[Subscription]] = {}
        for subscription in subscriptions:
            if subscription.note_change(changed):
                sleeping.setdefault(subscription.loop, []).append(subscription)
        for loop, readers in sleeping.items():  # at once: each call wakes the thread of the loop
            loop.call_soon_threadsafe(_schedule_wakes, readers)


def _schedule_wakes(subscriptions: list[Subscription]) -> None:
    for subscription in subscriptions:
        subscription.schedule_wake()
