"""Logs are captured continuously: one follower for each container, into the store's files.

A follower reads on from the file's own cursor, whatever cut it off. Only a stream that was begun after the container
had ended, and that came to its proper end, proves that the log is complete.
"""

from __future__ import annotations

import logging
import threading
import time

from riseml.errors import EngineError, RisemlError
from riseml.executors.base import Executor
from riseml.executors.connection import gone
from riseml.faultpoints import Point, reach
from riseml.model import ContainerSeen, JobKey
from riseml.server.news import News
from riseml.server.wake import Wake
from riseml.store.logs import Logs

_AGAIN = (0.05, 0.2, 1.0, 5.0)  # seconds between attempts at a stream that breaks
_BREATH = 0.002  # seconds; of a job that prints without a pause, what comes in them is stored as one piece
_OFTEN = 0.005

log = logging.getLogger(__name__)


class Pump:
    """All followers."""

    def __init__(self, logs: Logs, news: News, wake: Wake) -> None:
        self._logs = logs
        self._news = news
        self._wake = wake
        self._lock = threading.Lock()
        self._followers: dict[str, _Follower] = {}

    def watch(self, executor: Executor, container: ContainerSeen) -> bool:
        """See to it that the container's log is captured; True when it has ended and we hold all of it."""
        if not container.started:
            return True
        with self._lock:
            follower = self._followers.get(container.id)
            if follower is None:
                follower = _Follower(executor, container.key, self._logs, self._news, self._wake)
                self._followers[container.id] = follower
                follower.start()
        if not container.running:
            follower.ended.set()
        return follower.drained.is_set()

    def forget(self, present: frozenset[str]) -> None:
        """Drop the followers of containers that are no more."""
        with self._lock:
            for gone_id in [identity for identity in self._followers if identity not in present]:
                self._followers.pop(gone_id).ended.set()


class _Follower(threading.Thread):
    """Reads one container's log until all of it is held."""

    def __init__(self, executor: Executor, key: JobKey, logs: Logs, news: News, wake: Wake) -> None:
        super().__init__(name=f"log-{key.experiment}-{key.job}-{key.attempt}", daemon=True)
        self.ended = threading.Event()
        self.drained = threading.Event()
        self._executor = executor
        self._key = key
        self._logs = logs
        self._news = news
        self._wake = wake

    def run(self) -> None:
        failures = 0
        while not self.drained.is_set():
            final = self.ended.is_set()
            try:
                self._read(follow=not final)
                failures = 0
                if final:
                    self._finish()
            except EngineError as error:
                if gone(error):
                    self._finish()
                log.warning("log of %s: %s", self._key, error.message)
                failures += 1
            except (RisemlError, OSError) as error:
                log.warning("log of %s is read again: %s", self._key, error)
                failures += 1
            if not self.drained.is_set() and not final:
                self.ended.wait(_AGAIN[min(failures, len(_AGAIN) - 1)])

    def _read(self, *, follow: bool) -> None:
        last = 0.0
        for frames in self._executor.read_log(self._key, self._logs.cursor(self._key), follow=follow):
            reach(Point.LOG_READ)
            self._logs.append(self._key, frames)
            self._news.publish_lines(self._key.experiment)
            now = time.monotonic()
            if follow and now < last + _OFTEN:
                self.ended.wait(_BREATH)
            last = now

    def _finish(self) -> None:
        self._logs.finish(self._key)
        self.drained.set()
        self._news.publish(self._key.experiment)
        self._wake.set()
