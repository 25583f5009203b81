"""Logs are captured continuously: one follower for each container, into the store's files.

A follower reads on from the file's own cursor, whatever cut it off. Only a stream that was begun after the container
had ended, and that came to its proper end, proves that the log is complete. Of a job that has printed too much nothing
more is read: only its end is waited for.
"""

from __future__ import annotations

import logging
import threading
import time

from riseml.errors import RisemlError
from riseml.executors.base import Executor, NotThere
from riseml.faultpoints import Point, reach
from riseml.model import ContainerSeen, JobKey
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.wake import Wake
from riseml.store.logs.log_store import LogStore

_AGAIN = (0.05, 0.2, 1.0, 5.0)  # seconds between attempts at a stream that breaks
_BREATH = 0.002  # seconds; of a job that prints without a pause, what comes in them is stored as one piece
_OFTEN = 0.005

log = logging.getLogger(__name__)


class LogPump:
    """All followers."""

    def __init__(self, logs: LogStore, notifier: Notifier, wake: Wake) -> None:
        self._logs = logs
        self._notifier = notifier
        self._wake = wake
        self._lock = threading.Lock()
        self._followers: dict[str, _Follower] = {}

    def follow_container(self, executor: Executor, container: ContainerSeen) -> bool:
        """See to it that the container's log is captured; True when it has ended and we hold all of it."""
        if not container.started:
            return True
        with self._lock:
            follower = self._followers.get(container.id)
            if follower is None:
                follower = _Follower(executor, container.key, self._logs, self._notifier, self._wake)
                self._followers[container.id] = follower
                follower.start()
            follower.executor = executor  # another one when pool.yml has changed: the way of the last one is closed
        if not container.running:
            follower.ended.set()
        return follower.drained.is_set()

    def drop_followers(self, present: frozenset[str]) -> None:
        """Drop the followers of containers that are no more."""
        with self._lock:
            for gone_id in [identity for identity in self._followers if identity not in present]:
                self._followers.pop(gone_id).drop()


class _Follower(threading.Thread):
    """Reads one container's log until all of it is held, or until it is dropped. `executor` may change under way."""

    def __init__(self, executor: Executor, key: JobKey, logs: LogStore, notifier: Notifier, wake: Wake) -> None:
        super().__init__(name=f"log-{key.experiment}-{key.job}-{key.attempt}", daemon=True)
        self.executor = executor
        self.ended = threading.Event()
        self.drained = threading.Event()
        self._dropped = threading.Event()
        self._key = key
        self._logs = logs
        self._notifier = notifier
        self._wake = wake

    def drop(self) -> None:
        """The container is seen no more. If it comes back, with a host that had left the pool, somebody else reads on:
        so nothing more is written from here.
        """
        self.ended.set()
        self._dropped.set()

    def run(self) -> None:
        failures = 0
        while not self.drained.is_set():
            last, final = self._dropped.is_set(), self.ended.is_set()
            failures = 0 if self._try(final=final) else failures + 1
            if last:
                return
            if failures or not final:  # once the end is known, it no longer cuts a pause short
                (self._dropped if final else self.ended).wait(_AGAIN[min(failures, len(_AGAIN) - 1)])

    def _try(self, *, final: bool) -> bool:
        """Read on; false when that failed. Nothing ends the thread: without it the container would never be drained."""
        try:
            is_gone = self._read(follow=not final)
            if is_gone or (final and not self._dropped.is_set()):
                self._finish()
        except (RisemlError, OSError) as error:
            log.warning("log of %s is read again: %s", self._key, error)
            return False
        except Exception:
            log.exception("log of %s is read again", self._key)
            return False
        return True

    def _read(self, *, follow: bool) -> bool:
        """Store what comes; true when the container is gone, so that nothing more will come. Of a log that is full only
        the end is waited for.
        """
        last = 0.0
        if self._logs.is_job_full(self._key):
            if follow:
                self.ended.wait()
            return False
        try:
            for frames in self.executor.read_log(self._key, self._logs.find_cursor(self._key), follow=follow):
                if self._dropped.is_set():
                    return False
                reach(Point.LOG_READ)
                self._logs.append_frames(self._key, frames)
                self._notifier.publish_lines(self._key.experiment)
                if self._logs.is_job_full(self._key):
                    return False
                now = time.monotonic()
                if follow and now < last + _OFTEN:
                    self.ended.wait(_BREATH)
                last = now
        except NotThere as error:
            log.warning("log of %s: %s", self._key, error.message)
            return True
        return False

    def _finish(self) -> None:
        self._logs.finish_job(self._key)
        self.drained.set()
        self._notifier.publish_records(self._key.experiment)
        self._wake.set()
